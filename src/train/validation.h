#pragma once
// Held-out loss: every token of the validation sets is scored once.

#include "data/tokenizer.h"
#include "model/zaya.h"
#include "train/data_feed.h"
#include "train/metrics.h"

namespace zaya {

// Over at most `token_limit` tokens of each set (0: all), `batch_tokens` at a time. Bits per byte
// count the bytes that the scored tokens stand for.
ValidationMetrics validate(Context& ctx, Zaya& model, const Tokenizer& tokenizer,
                           const std::vector<ValidationSet>& sets, const Phase& phase,
                           int64_t token_limit);

}  // namespace zaya
