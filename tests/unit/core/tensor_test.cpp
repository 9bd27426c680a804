#include "core/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/arena.h"

namespace zaya {
namespace {

TEST(Tensor, ColumnRangeKeepsTheRowStride) {
  std::vector<float> data{0, 1, 2, 3, 4, 5};
  const Tensor x(data.data(), DType::f32, {2, 3});
  const Tensor slice = x.column_range(1, 3);
  EXPECT_EQ(slice.columns(), 2);
  EXPECT_FALSE(slice.contiguous());
  EXPECT_EQ(slice.row<float>(1)[0], 4);
}

TEST(Tensor, ReadingAsTheWrongTypeIsABrokenContract) {
  std::vector<float> data(2);
  const Tensor x(data.data(), DType::f32, {2});
  EXPECT_THROW(x.as<int32_t>(), ContractError);
}

TEST(Arena, MeasuringPlansWhatOwningHandsOut) {
  const auto carve = [](Arena& arena) {
    arena.tensor(DType::f32, {3, 5});
    ArenaScope scope(arena);
    return arena.tensor(DType::bf16, {100});
  };
  Arena plan;
  carve(plan);
  Arena arena(plan.peak());
  const Tensor last = carve(arena);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(last.data) % 64, 0u);
  EXPECT_EQ(arena.used(), 64u);
  EXPECT_THROW(arena.tensor(DType::f32, {1000}), ContractError);
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(bf16(1.0f + 0x1p-8f).bits, bf16(1.0f).bits);
  EXPECT_EQ(bf16(1.0f + 3 * 0x1p-8f).bits, 0x3f82);
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(std::nanf("")))));
}

}  // namespace
}  // namespace zaya
