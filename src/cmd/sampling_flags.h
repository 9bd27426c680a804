#pragma once
// The options of generate and chat that choose tokens and end texts.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "infer/generate.h"
#include "infer/generation_config.h"

namespace zaya {

struct SamplingFlags {
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<int64_t> top_k, max_tokens;
  std::vector<std::string> logit_bias;  // "ID=BIAS"
  std::vector<std::string> stops;
  uint64_t seed = 0;
};

void add_sampling_flags(CLI::App& command, SamplingFlags& flags, int64_t default_max_tokens);

// What the flags say alone, checked: before a model is read.
void check_flags(const SamplingFlags& flags);

// The flags over what the model's folder says over our defaults.
GenerateOptions generate_options(const SamplingFlags& flags, const GenerationConfig& config,
                                 const SpecialIds& special, const Tokenizer& tokenizer,
                                 int64_t default_max_tokens);

}  // namespace zaya
