#pragma once
// Text from a model: the prompt once through, then a token at a time until it ends.

#include <functional>
#include <string>
#include <string_view>

#include "data/tokenizer.h"
#include "infer/sampler.h"
#include "model/zaya.h"

namespace zaya {

struct GenerateOptions {
  int64_t max_tokens = 256;
  SamplingOptions sampling;
};

struct Generation {
  std::string text;  // without the prompt
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
  double prompt_seconds = 0;
  double decode_seconds = 0;
  bool ended = false;  // the model said the document is over (eos)
};

// Encodes bos + prompt, runs it, and samples. `on_text` receives whole characters as they become
// certain; returning false stops. Errors when the tokenizer does not belong to the model.
Generation generate(Context& ctx, Zaya& model, const Tokenizer& tokenizer, std::string_view prompt,
                    const GenerateOptions& options,
                    const std::function<bool(std::string_view)>& on_text);

}  // namespace zaya
