#include "backend/cpu/instruction_set.h"

#include <hwy/highway.h>
#include <oneapi/dnnl/dnnl.h>

#include "backend/cpu/bf16_tiles.h"
#include "backend/cpu/matmul_kernel.h"
#include "core/error.h"

namespace zaya {

std::string instruction_set() {
  const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  const std::string vectors = hwy::TargetName(usable & -usable);  // the lowest bit is the best one
  return vectors + (has_bf16_tiles() ? "+AMX" : multiplies_bf16() ? "+BF16" : "");
}

void leave_avx512_unused() {
  ZAYA_REQUIRE(dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2) == dnnl_success);
  hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL);
}

}  // namespace zaya
