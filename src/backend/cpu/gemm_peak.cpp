#include "backend/cpu/gemm_peak.h"

#include <algorithm>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>

#include "backend/best_seconds.h"

namespace zaya {
namespace {

// The best rate of [m, k] times [k, n] in a quarter of a second.
double rate(int64_t m, int64_t n, int64_t k, DType dtype) {
  using dnnl::memory;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const dnnl::stream stream(engine);
  const auto format = dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  const dnnl::matmul::primitive_desc description(
      {{{m, k}, format, memory::format_tag::ab},
       {{k, n}, format, memory::format_tag::any},
       {{m, n}, memory::data_type::f32, memory::format_tag::ab}},
      engine);
  const dnnl::matmul product(description);
  std::unordered_map<int, memory> operands{{DNNL_ARG_SRC, {description.src_desc(), engine}},
                                           {DNNL_ARG_WEIGHTS, {description.weights_desc(), engine}},
                                           {DNNL_ARG_DST, {description.dst_desc(), engine}}};
  for (auto& [name, operand] : operands)
    std::memset(operand.get_data_handle(), 0, operand.get_desc().get_size());
  const double best = best_seconds(0.25, [&] { product.execute(stream, operands); });
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / best;
}

}  // namespace

double measure_gemm_peak(DType dtype) {
  double best = 0;
  for (const int64_t m : {512, 2048})
    for (const int64_t n : {512, 1024}) best = std::max(best, rate(m, n, 512, dtype));
  return best;
}

}  // namespace zaya
