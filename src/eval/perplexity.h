#pragma once
// How well a model foretells a text: the loss of every token after those before it.

#include <functional>

#include "data/tokenizer.h"
#include "model/zaya.h"

namespace zaya {

enum class ReadAs {
  prompt,     // windows at once, as prompts are read
  generated,  // a token at a time through the caches, as generated tokens are
};

struct TextScore {
  double loss_sum = 0;  // nats
  int64_t tokens = 0;   // that were foretold
  int64_t bytes = 0;    // that they stand for

  double loss() const { return loss_sum / static_cast<double>(tokens); }
  double perplexity() const;
  double bits_per_byte() const;
};

// Cuts the text into windows of `context` tokens, each beginning with bos (without one, with a
// token that nothing foretells), the last one shorter. Error when there is nothing to foretell, or
// the tokenizer has tokens that the model has not. `progress` is told the share that is done.
TextScore score_text(Context& ctx, Zaya& model, const Tokenizer& tokenizer, std::string_view text,
                     int64_t context, ReadAs read_as, const std::function<void(double)>& progress);

}  // namespace zaya
