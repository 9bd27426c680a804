#pragma once
// Weights as integer codes (core/weight.h): from values, and back.

#include "core/weight.h"

namespace zaya {

// Weights [begin, begin + count) of row n, `begin` and `count` multiples of kQuantGroup. bf16
// values are rounded to nearest even.
void decode_weights(float* to, const Weight& weight, int64_t n, int64_t begin, int64_t count);
void decode_weights(bf16* to, const Weight& weight, int64_t n, int64_t begin, int64_t count);

// Codes and scales of row n, from K finite values.
//   int8: the largest of a group becomes 127 or -127.
//   int4: of the scales that put the largest at -8, or a little past the ends, the one whose
//   squared error is least.
void encode_weights(const Weight& weight, int64_t n, const float* values);

}  // namespace zaya
