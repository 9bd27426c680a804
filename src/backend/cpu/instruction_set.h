#pragma once

namespace zaya {

// What CPU ops run on here: the best of the instruction sets they were compiled for, in Highway's
// names ("AVX2", "AVX3" for AVX-512, ...). Results are bit-identical on machines where it is the
// same.
const char* instruction_set();

// From now on computes as a machine without AVX-512 does, to its last bit. Call before anything is
// computed.
void leave_avx512_unused();

}  // namespace zaya
