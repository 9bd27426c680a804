#pragma once
// What generate and chat need of a model: its folder, tokenizer, wishes and weights.

#include <CLI/CLI.hpp>
#include <memory>

#include "checkpoint/hf_model.h"
#include "cmd/sampling_flags.h"

namespace zaya {

struct TextModelFlags {
  std::string model;
  std::string tokenizer;
  std::string dtype = "auto";
};
void add_model_flags(CLI::App& command, TextModelFlags& flags);

struct TextModel {
  std::filesystem::path folder;
  std::unique_ptr<Tokenizer> tokenizer;
  GenerationConfig generation;
  TokenizerConfig tokenizer_config;
  SpecialIds special;
};
// All but the weights, which take longer.
TextModel open_text_model(const TextModelFlags& flags);
Zaya load_weights(Context& ctx, const TextModelFlags& flags, const TextModel& model);

// Figures for people, on standard error when that is a terminal: "12 prompt tokens at 310/s, 80 new
// tokens at 41/s, 1.2 GB of memory".
struct TextFigures {
  int64_t prompt_tokens = 0, new_tokens = 0, decode_steps = 0;
  double prompt_seconds = 0, decode_seconds = 0;
  void add(const Generation& done);
};
void print_figures(const TextFigures& figures, const std::string& note = "");
double rate(int64_t count, double seconds);

}  // namespace zaya
