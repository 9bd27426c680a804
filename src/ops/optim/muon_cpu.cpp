#include <algorithm>
#include <cmath>

#include "backend/cpu/instruction_set.h"
#include "backend/cpu/threads.h"
#include "ops/elementwise/elementwise.h"
#include "ops/optim/muon.h"
#include "ops/optim/newton_schulz.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/optim/muon_cpu.cpp"
#include <hwy/foreach_target.h>

#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// The momentum, and the direction u that is to be orthogonalised.
void momentum_run(float* u, float* m, const float* gradient, int64_t n, const MuonSettings& s) {
  for_each_vector(n, [&](auto d, int64_t i) {
    const auto g = hn::Mul(load(d, gradient + i), hn::Set(d, s.gradient_scale));
    const auto momentum = hn::MulAdd(hn::Set(d, s.momentum), load(d, m + i), g);
    store(momentum, d, m + i);
    store(s.nesterov ? hn::MulAdd(hn::Set(d, s.momentum), momentum, g) : momentum, d, u + i);
  });
}

// w -= step * o + decay * w.
void step_run(float* w, const float* o, int64_t n, float step, float decay) {
  for_each_vector(n, [&](auto d, int64_t i) {
    const auto weight = load(d, w + i);
    const auto change =
        hn::MulAdd(hn::Set(d, decay), weight, hn::Mul(hn::Set(d, step), load(d, o + i)));
    store(hn::Sub(weight, change), d, w + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(momentum_run);
HWY_EXPORT(step_run);

constexpr int64_t kGrain = 16384;
struct Scratch;

void check(DType products) { ZAYA_REQUIRE(products == multiplied_format(products)); }

void check(const MuonMatrix& matrix) {
  const Tensor& w = matrix.weight;
  ZAYA_REQUIRE(w.shape.rank() == 2);
  for (const Tensor* t : {&matrix.weight, &matrix.momentum, &matrix.gradient}) {
    ZAYA_REQUIRE(t->dtype == DType::f32 && t->contiguous());
    ZAYA_REQUIRE(t->rows() == w.rows() && t->columns() == w.columns());
  }
}

void update_matrix(Context& ctx, const MuonMatrix& matrix, const MuonSettings& settings) {
  const int64_t rows = matrix.weight.rows(), columns = matrix.weight.columns();
  const int64_t n = rows * columns;
  const int64_t scratch = newton_schulz_scratch(rows, columns, settings.products);
  float* u = thread_buffer<Scratch, float>(n + scratch);
  float* w = matrix.weight.as<float>();
  float* m = matrix.momentum.as<float>();
  const float* g = matrix.gradient.as<float>();
  parallel_ranges(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(momentum_run)(u + begin, m + begin, g + begin, end - begin, settings);
  });
  const float* o = newton_schulz_steps(ctx, u, u + n, rows, columns, settings.products);
  const double size = 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)));
  const float step = static_cast<float>(settings.learning_rate * size);
  const float decay = settings.learning_rate * settings.weight_decay;
  parallel_ranges(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(step_run)(w + begin, o + begin, end - begin, step, decay);
  });
}

double cost_of(const MuonMatrix& matrix, DType products) {
  return newton_schulz_multiplications(matrix.weight.rows(), matrix.weight.columns(), products);
}

}  // namespace

void muon_update(Context& ctx, std::span<const MuonMatrix> matrices, const MuonSettings& settings) {
  struct Order;
  check(settings.products);
  const auto cost = [&](const MuonMatrix& matrix) { return cost_of(matrix, settings.products); };
  const int64_t count = static_cast<int64_t>(matrices.size());
  int64_t* order = thread_buffer<Order, int64_t>(count);
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    check(matrices[i]);
    order[i] = i;
    total += cost(matrices[i]);
  }
  std::sort(order, order + count, [&](int64_t i, int64_t j) {
    const double a = cost(matrices[i]), b = cost(matrices[j]);
    return a != b ? a > b : i < j;
  });
  // A matrix so large that the threads would wait for one of them shares them all; the rest are
  // handed out whole, the largest first. Neither changes a result.
  const double large = total / (2 * thread_count());
  int64_t first = 0;
  while (first < count && cost(matrices[order[first]]) > large) {
    update_matrix(ctx, matrices[order[first++]], settings);
  }
  parallel_for(count - first,
               [&](int64_t i) { update_matrix(ctx, matrices[order[first + i]], settings); });
}

void newton_schulz(Context& ctx, const Tensor& out, const Tensor& in, DType products) {
  check(products);
  const int64_t rows = in.rows(), columns = in.columns();
  ZAYA_REQUIRE(out.rows() == rows && out.columns() == columns);
  const int64_t scratch = newton_schulz_scratch(rows, columns, products);
  float* x = thread_buffer<Scratch, float>(rows * columns + scratch);
  convert(ctx, Tensor(x, DType::f32, {rows, columns}), in);
  float* result = newton_schulz_steps(ctx, x, x + rows * columns, rows, columns, products);
  convert(ctx, out, Tensor(result, DType::f32, {rows, columns}));
}

}  // namespace zaya
#endif
