#include "backend/cpu/instruction_set.h"

#include <hwy/highway.h>
#include <oneapi/dnnl/dnnl.h>

#include "core/error.h"

namespace zaya {

const char* instruction_set() {
  const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(usable & -usable);  // the lowest bit is the best one
}

void leave_avx512_unused() {
  ZAYA_REQUIRE(dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2) == dnnl_success);
  hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL);
}

}  // namespace zaya
