#include "train/validation.h"

#include <algorithm>
#include <cmath>

#include "core/ceil_div.h"

namespace zaya {
namespace {

struct Score {
  double loss_sum = 0;
  int64_t labels = 0;
  int64_t bytes = 0;

  double loss() const { return labels > 0 ? loss_sum / static_cast<double>(labels) : 0; }
  double bits_per_byte() const {
    return bytes > 0 ? loss_sum / std::log(2.0) / static_cast<double>(bytes) : 0;
  }
  void add(const Score& other) {
    loss_sum += other.loss_sum;
    labels += other.labels;
    bytes += other.bytes;
  }
};

Score score_batch(Context& ctx, Zaya& model, const Tokenizer& tokenizer, const Batch& batch) {
  TokenBatch tokens;
  tokens.set(batch.ids, batch.labels, batch.cu_seqlens);
  model.forward(ctx, tokens);
  Score score;
  score.loss_sum = model.losses(ctx, tokens);
  score.labels = batch.label_count;
  for (int32_t label : batch.labels)
    if (label >= 0 && label < tokenizer.vocab_size()) score.bytes += tokenizer.byte_length(label);
  return score;
}

Score score_set(Context& ctx, Zaya& model, const Tokenizer& tokenizer, const TokenStream& stream,
                const Phase& phase, int64_t token_limit) {
  const int64_t all = validation_windows(stream, phase.seq_len);
  const int64_t limit = token_limit > 0 ? ceil_div(token_limit, phase.seq_len) : all;
  const int64_t windows = std::min(all, limit), rows = phase.micro_batch_rows();
  const DocumentMask mask = phase.mask_documents ? DocumentMask::documents : DocumentMask::none;
  Score score;
  Batch batch;
  for (int64_t first = 0; first < windows; first += rows) {
    fill_validation_batch(stream, phase.seq_len, first, std::min(rows, windows - first), mask,
                          batch);
    score.add(score_batch(ctx, model, tokenizer, batch));
  }
  return score;
}

}  // namespace

ValidationMetrics validate(Context& ctx, Zaya& model, const Tokenizer& tokenizer,
                           const std::vector<ValidationSet>& sets, const Phase& phase,
                           int64_t token_limit) {
  ValidationMetrics metrics;
  Score total;
  for (const ValidationSet& set : sets) {
    const Score score = score_set(ctx, model, tokenizer, *set.stream, phase, token_limit);
    total.add(score);
    if (sets.size() > 1) {
      metrics.loss_by_source[set.name] = score.loss();
      metrics.bits_per_byte_by_source[set.name] = score.bits_per_byte();
    }
  }
  metrics.loss = total.loss();
  metrics.bits_per_byte = total.bits_per_byte();
  return metrics;
}

}  // namespace zaya
