#pragma once
// Data for SIMD tests: arrays that start at a chosen misalignment, and the comparison of runs on
// different numbers of threads.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backend/cpu/threads.h"
#include "core/tensor.h"

namespace zaya::test {

// Every length a SIMD loop treats differently: up to two vectors of the widest kind (16 lanes) and
// one more.
inline constexpr int64_t kMaxLength = 33;

// A copy of `values` that starts `offset` elements past the start of its allocation.
template <class T>
class Placed {
 public:
  Placed(const std::vector<T>& values, Shape shape, int64_t offset)
      : memory_(offset + values.size()), shape_(shape), offset_(offset) {
    EXPECT_EQ(static_cast<int64_t>(values.size()), shape.size());
    std::copy(values.begin(), values.end(), memory_.begin() + offset);
  }

  Tensor tensor() { return Tensor(memory_.data() + offset_, DTypeOf<T>::value, shape_); }
  std::vector<T> values() const { return {memory_.begin() + offset_, memory_.end()}; }

 private:
  std::vector<T> memory_;
  Shape shape_;
  int64_t offset_;
};

// f() returns a vector, and the same bits on 1 and on 2 threads.
template <class F>
void expect_same_bits_on_1_and_2_threads(F&& f) {
  set_thread_count(1);
  const auto one = f();
  set_thread_count(2);
  const auto two = f();
  set_thread_count(0);
  ASSERT_EQ(one.size(), two.size());
  EXPECT_EQ(std::memcmp(one.data(), two.data(), one.size() * sizeof(one[0])), 0);
}

}  // namespace zaya::test
