#include "model/batch.h"

#include <algorithm>

#include "ops/loss/cross_entropy.h"

namespace zaya {

void TokenBatch::set(std::span<const int32_t> ids, std::span<const int32_t> labels,
                     std::span<const int32_t> cu_seqlens) {
  ZAYA_REQUIRE(cu_seqlens.size() >= 2 && cu_seqlens.front() == 0 &&
               cu_seqlens.back() == static_cast<int64_t>(ids.size()) &&
               (labels.empty() || labels.size() == ids.size()));
  ids_.assign(ids.begin(), ids.end());
  labels_.assign(labels.begin(), labels.end());
  cu_seqlens_.assign(cu_seqlens.begin(), cu_seqlens.end());
  positions_.resize(ids.size());
  spans_.clear();
  last_position_ = -1;
  const Ragged ragged = sequences();
  for (int64_t s = 0; s < ragged.count(); ++s) {
    const int64_t begin = ragged.begin(s), length = ragged.length(s);
    ZAYA_REQUIRE(length >= 0);
    for (int64_t i = 0; i < length; ++i) positions_[begin + i] = static_cast<int32_t>(i);
    spans_.push_back({begin, length, begin, length});
    last_position_ = std::max(last_position_, length - 1);
  }
}

void TokenBatch::set_continuations(std::span<const Continuation> pieces) {
  ids_.clear();
  labels_.clear();
  positions_.clear();
  spans_.clear();
  cu_seqlens_.assign(1, 0);
  last_position_ = -1;
  for (const Continuation& piece : pieces) {
    const auto count = static_cast<int64_t>(piece.ids.size());
    spans_.push_back({tokens(), count, piece.cache_row, piece.past + count});
    ids_.insert(ids_.end(), piece.ids.begin(), piece.ids.end());
    for (int64_t i = 0; i < count; ++i) positions_.push_back(static_cast<int32_t>(piece.past + i));
    cu_seqlens_.push_back(static_cast<int32_t>(tokens()));
    last_position_ = std::max(last_position_, piece.past + count - 1);
  }
}

int64_t TokenBatch::label_count() const {
  return std::count_if(labels_.begin(), labels_.end(),
                       [](int32_t label) { return label != kIgnoredLabel; });
}

}  // namespace zaya
