#pragma once
// Texts from a model: each prompt once through, then a token at a time, several side by side. A
// text's bits do not depend on the others.

#include <functional>
#include <string>
#include <string_view>

#include "infer/writer.h"
#include "model/zaya.h"

namespace zaya {

struct GenerateOptions {
  SamplingOptions sampling;
  WriteOptions write;
  int64_t batch = 16;  // prompts at a time, at most
};

struct Generation {
  std::string text;  // without the prompt
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;    // one that ended the text among them
  int64_t decode_steps = 0;  // runs of the model after the prompt
  double prompt_seconds = 0;
  double decode_seconds = 0;
  Stopped stopped = Stopped::not_yet;  // not_yet: never begun, because of an interruption
};

struct GenerateHooks {
  // Text of prompt `index` as it becomes certain.
  std::function<void(size_t index, std::string_view text)> on_text = [](size_t, auto) {};
  std::function<void(size_t index, const Generation& done)> on_done = [](size_t, const auto&) {};
  // Asked often; true stops everything.
  std::function<bool()> interrupted = [] { return false; };
};

// Error when the tokenizer has tokens that the model has not.
void check_belongs(const Tokenizer& tokenizer, const ModelConfig& config);

// Prompts as token ids, each of at least one token and fewer than the model's longest sequence: an
// Error otherwise, before anything runs. Each text is sampled as if its prompt were the only one.
std::vector<Generation> generate(Context& ctx, const Zaya& model, const Tokenizer& tokenizer,
                                 const std::vector<std::vector<int32_t>>& prompts,
                                 const GenerateOptions& options, const GenerateHooks& hooks);

}  // namespace zaya
