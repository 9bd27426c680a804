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

void TokenBatch::set_continuation(std::span<const int32_t> ids, int64_t past) {
  const auto count = static_cast<int64_t>(ids.size());
  ids_.assign(ids.begin(), ids.end());
  labels_.clear();
  cu_seqlens_ = {0, static_cast<int32_t>(count)};
  positions_.resize(ids.size());
  for (int64_t i = 0; i < count; ++i) positions_[i] = static_cast<int32_t>(past + i);
  spans_ = {{0, count, 0, past + count}};
  last_position_ = past + count - 1;
}

int64_t TokenBatch::label_count() const {
  return std::count_if(labels_.begin(), labels_.end(),
                       [](int32_t label) { return label != kIgnoredLabel; });
}

}  // namespace zaya
