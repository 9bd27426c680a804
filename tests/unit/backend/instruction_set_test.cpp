#include "backend/cpu/instruction_set.h"

#include <gtest/gtest.h>

namespace zaya {
namespace {

TEST(InstructionSet, Bf16IsMultipliedAsBf16WhereTheMachineCan) {
  EXPECT_EQ(multiplied_format(DType::f32), DType::f32);
  EXPECT_EQ(multiplied_format(DType::bf16), multiplies_bf16() ? DType::bf16 : DType::f32);
}

// Each set has those before it.
TEST(InstructionSet, TilesComeWithPairsAndPairsWithAvx512) {
  EXPECT_LE(has_bf16_tiles(), multiplies_bf16());
  EXPECT_LE(multiplies_bf16(), has_avx512());
  EXPECT_EQ(instruction_set().ends_with("+AMX"), has_bf16_tiles());
}

}  // namespace
}  // namespace zaya
