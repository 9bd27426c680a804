#include "backend/cpu/instruction_set.h"

#include <hwy/highway.h>
#include <oneapi/dnnl/dnnl.h>

#include "core/error.h"

namespace zaya {
namespace {

// oneDNN asks the kernel's leave, where that is needed, before it says that it has a set.
bool has(dnnl_cpu_isa_t isa) { return (dnnl_get_effective_cpu_isa() & isa) == isa; }

}  // namespace

std::string instruction_set() {
  const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  const std::string vectors = hwy::TargetName(usable & -usable);  // the lowest bit is the best one
  return vectors + (has_bf16_tiles() ? "+AMX" : multiplies_bf16() ? "+BF16" : "");
}

bool has_avx512() {
  static const bool answer = has(dnnl_cpu_isa_avx512_core);
  return answer;
}

bool multiplies_bf16() {
  static const bool answer = has(dnnl_cpu_isa_avx512_core_bf16);
  return answer;
}

bool has_bf16_tiles() {
  static const bool answer = has(dnnl_cpu_isa_avx512_core_amx);
  return answer;
}

bool multiplies_bytes() {
  static const bool answer = has(dnnl_cpu_isa_avx512_core_vnni);
  return answer;
}

DType multiplied_format(DType operands) {
  return operands == DType::bf16 && multiplies_bf16() ? DType::bf16 : DType::f32;
}

void leave_avx512_unused() {
  ZAYA_REQUIRE(dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2) == dnnl_success);
  hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL);
}

}  // namespace zaya
