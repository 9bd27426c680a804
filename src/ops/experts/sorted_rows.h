#pragma once
// What sort_by_expert wrote, as the CPU ops that move rows read it: bounds checked, because an
// index is about to become an address.

#include <cstdint>

#include "core/tensor.h"

namespace zaya {

inline constexpr int64_t kSortedRows = 16;  // rows an item moves

class SortedRows {
 public:
  // order [T], offsets [E + 2]: dispatch.h.
  SortedRows(const Tensor& order, const Tensor& offsets)
      : order_(order.as<int32_t>()), tokens_(order.size()) {
    ZAYA_REQUIRE(order.contiguous() && offsets.contiguous() && offsets.size() >= 2);
    count_ = offsets.as<int32_t>()[offsets.size() - 2];
    ZAYA_REQUIRE(0 <= count_ && count_ <= tokens_);
  }

  int64_t tokens() const { return tokens_; }
  // Tokens that chose an expert: the first `count` sorted positions.
  int64_t count() const { return count_; }
  int64_t token(int64_t position) const {
    const int64_t t = order_[position];
    ZAYA_REQUIRE(0 <= t && t < tokens_);
    return t;
  }

 private:
  const int32_t* order_;
  int64_t tokens_;
  int64_t count_;
};

}  // namespace zaya
