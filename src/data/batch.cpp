#include "data/batch.h"

#include <algorithm>

#include "core/ceil_div.h"
#include "core/error.h"

namespace zaya {

namespace {

constexpr int32_t kIgnoredLabel = -100;

void end_sequence(Batch& batch, int64_t end) {
  const int64_t length = end - batch.cu_seqlens.back();
  if (length == 0) return;
  batch.cu_seqlens.push_back(static_cast<int32_t>(end));
  batch.max_sequence = std::max(batch.max_sequence, length);
}

// Appends tokens [begin, begin + inputs] of the stream as one row of `inputs` tokens.
void append_row(const TokenStream& stream, int64_t begin, int64_t inputs, DocumentMask mask,
                Batch& batch) {
  const size_t count = static_cast<size_t>(inputs);
  const size_t at = batch.ids.size();
  // One token more than inputs, the last label; it is cut off again below.
  batch.ids.resize(at + count + 1);
  stream.copy(begin, std::span(batch.ids).subspan(at), batch.starts);
  batch.labels.insert(batch.labels.end(), batch.ids.begin() + static_cast<int64_t>(at) + 1,
                      batch.ids.end());
  batch.ids.resize(at + count);
  batch.label_count += inputs;
  if (mask == DocumentMask::documents) {
    for (const int64_t start : batch.starts) {  // in [0, inputs]
      if (start == 0) continue;
      batch.labels[at + static_cast<size_t>(start) - 1] = kIgnoredLabel;
      --batch.label_count;
      end_sequence(batch, static_cast<int64_t>(at) + start);
    }
  }
  end_sequence(batch, static_cast<int64_t>(at + count));
}

}  // namespace

void Batch::clear() {
  ids.clear();
  labels.clear();
  cu_seqlens.assign(1, 0);
  samples.clear();
  label_count = 0;
  max_sequence = 0;
}

void fill_batch(const Sampler& sampler, int64_t first, int64_t rows, DocumentMask mask,
                Batch& batch) {
  batch.clear();
  batch.ids.reserve(static_cast<size_t>(rows * sampler.seq_len() + 1));
  for (int64_t n = first; n < first + rows; ++n) {
    const SampleId sample = sampler.sample_at(n);
    append_row(sampler.stream(sample.source), sample.window * sampler.seq_len(), sampler.seq_len(),
               mask, batch);
    batch.samples.push_back(sample);
  }
}

int64_t validation_windows(const TokenStream& stream, int64_t seq_len) {
  ZAYA_REQUIRE(seq_len > 0);
  if (stream.token_count() < 2) {
    fail(
        "source {}: {} tokens to validate on, wanted 2 or more (fewer than holdout_every documents "
        "leave none)",
        stream.name(), stream.token_count());
  }
  return ceil_div(stream.token_count() - 1, seq_len);
}

void fill_validation_batch(const TokenStream& stream, int64_t seq_len, int64_t first, int64_t rows,
                           DocumentMask mask, Batch& batch) {
  batch.clear();
  const int64_t end = std::min(first + rows, validation_windows(stream, seq_len));
  for (int64_t window = first; window < end; ++window) {
    const int64_t begin = window * seq_len;
    append_row(stream, begin, std::min(seq_len, stream.token_count() - 1 - begin), mask, batch);
    batch.samples.push_back({0, 0, window});
  }
}

}  // namespace zaya
