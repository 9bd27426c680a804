#pragma once
// Token windows as flat batches: rows one after another, sequences as offsets, labels shifted.

#include <cstdint>
#include <vector>

#include "data/sampler.h"

namespace zaya {

struct Batch {
  std::vector<int32_t> ids;         // [T]
  std::vector<int32_t> labels;      // [T] the token after each; -100 where there is none to learn
  std::vector<int32_t> cu_seqlens;  // [sequences + 1]
  std::vector<SampleId> samples;    // one a row
  int64_t label_count = 0;          // labels that are not -100
  int64_t max_sequence = 0;         // length of the longest sequence
  std::vector<int64_t> starts;      // scratch of the filling functions

  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
  void clear();
};

enum class DocumentMask {
  // A sequence ends where a document ends, and the label there is -100: no token sees or is asked
  // to predict another document.
  documents,
  // A row is one sequence, whatever documents it holds.
  none,
};

// Samples [first, first + rows) of the phase. The batch's memory is reused.
void fill_batch(const Sampler& sampler, int64_t first, int64_t rows, DocumentMask mask,
                Batch& batch);

// Validation walks a stream once, in order: every token but the first is a label exactly once, the
// last window being shorter. (Under DocumentMask::documents the first token of each document is no
// label.)
int64_t validation_windows(const TokenStream& stream, int64_t seq_len);
// Windows [first, first + rows) of those; fewer rows at the end. Error for a stream of less than
// two tokens. samples hold source 0, epoch 0.
void fill_validation_batch(const TokenStream& stream, int64_t seq_len, int64_t first, int64_t rows,
                           DocumentMask mask, Batch& batch);

}  // namespace zaya
