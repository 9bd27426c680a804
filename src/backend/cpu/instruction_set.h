#pragma once

#include <string>

namespace zaya {

// What CPU ops run on here: the best of the instruction sets they were compiled for, in Highway's
// names ("AVX2", "AVX3" for AVX-512, ...), and what multiplies bf16 beside it: "AVX3+BF16" with
// vectors of pairs, "AVX3+AMX" with tiles.
std::string instruction_set();

// From now on computes as a machine without AVX-512 does, to its last bit. Call before anything is
// computed.
void leave_avx512_unused();

}  // namespace zaya
