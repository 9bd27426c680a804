#pragma once
// What this processor can do, and so what computes here.

#include <string>

#include "core/dtype.h"

namespace zaya {

// What CPU ops run on here: the best of the instruction sets they were compiled for, in Highway's
// names ("AVX2", "AVX3" for AVX-512, ...), and what multiplies bf16 beside it: "AVX3+BF16" with
// vectors of pairs, "AVX3+AMX" with tiles.
std::string instruction_set();

bool has_avx512();
// True where the machine multiplies bf16 pairs (AVX-512 BF16); elsewhere bf16 has to be widened.
bool multiplies_bf16();
// True where it multiplies them in tile registers, too (AMX), and the kernel lets this process.
bool has_bf16_tiles();

// True where it sums products of bytes four at a time (AVX-512 VNNI). Only speed depends on it.
bool multiplies_bytes();

// What operands of a format are multiplied as here: bf16 where the machine multiplies bf16 pairs,
// otherwise f32. The peak of this format is the ceiling of their products.
DType multiplied_format(DType operands);

// From now on computes as a machine without AVX-512 does, to its last bit. Call before anything is
// computed.
void leave_avx512_unused();

}  // namespace zaya
