#pragma once
// What a model reads: tokens laid end to end, and where each sequence begins.

#include <span>
#include <vector>

#include "core/tensor.h"
#include "ops/attention/attention.h"
#include "ops/ragged.h"

namespace zaya {

// The next tokens of a sequence that has had `past` of them; its keys and values stand in a
// decoder's memory from row `cache_row` on.
struct Continuation {
  std::span<const int32_t> ids;
  int64_t past = 0;
  int64_t cache_row = 0;
};

// Holds T tokens in S sequences. Storage is kept between uses.
class TokenBatch {
 public:
  // Sequences that start from nothing: positions count from 0 in each.
  // labels may be empty when there is no loss; otherwise T of them, -100 where not counted.
  void set(std::span<const int32_t> ids, std::span<const int32_t> labels,
           std::span<const int32_t> cu_seqlens);
  // Sequences that go on, as a decoder feeds them. Spans count keys by the decoder's rows.
  void set_continuations(std::span<const Continuation> pieces);

  int64_t tokens() const { return static_cast<int64_t>(ids_.size()); }
  Tensor ids() const { return tensor(ids_); }              // [T] i32
  Tensor labels() const { return tensor(labels_); }        // [T] i32
  Tensor positions() const { return tensor(positions_); }  // [T] i32
  Ragged sequences() const { return {cu_seqlens_}; }
  std::span<const AttentionSpan> spans() const { return spans_; }
  int64_t last_position() const { return last_position_; }
  // Labels that count.
  int64_t label_count() const;

 private:
  static Tensor tensor(const std::vector<int32_t>& values) {
    return Tensor(const_cast<int32_t*>(values.data()), DType::i32,
                  {static_cast<int64_t>(values.size())});
  }

  std::vector<int32_t> ids_, labels_, positions_, cu_seqlens_;
  std::vector<AttentionSpan> spans_;
  int64_t last_position_ = -1;
};

}  // namespace zaya
