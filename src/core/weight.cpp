#include "core/weight.h"

#include "core/arena.h"

namespace zaya {

Weight plan_weight(Arena& arena, WeightFormat format, int64_t rows, int64_t inputs) {
  if (format == WeightFormat::f32) return arena.tensor(DType::f32, {rows, inputs});
  if (format == WeightFormat::bf16) return arena.tensor(DType::bf16, {rows, inputs});
  ZAYA_REQUIRE(quantizable(inputs));
  const Tensor codes = format == WeightFormat::int8 ? arena.tensor(DType::i8, {rows, inputs})
                                                    : arena.tensor(DType::u8, {rows, inputs / 2});
  return {codes, arena.tensor(DType::bf16, {rows, inputs / kQuantGroup})};
}

}  // namespace zaya
