#include "plan/random_weights.h"

#include <cstring>
#include <map>

#include "backend/cpu/threads.h"
#include "core/random.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/quantize.h"

namespace zaya {
namespace {

constexpr int64_t kPoolRows = 4096;
constexpr int64_t kRowsAtATime = 256;  // rows copied by one thread

// The router, and inputs that are no multiple of a group's, stay bf16, as in a quantised folder.
WeightFormat format_for(WeightFormat format, Role role, int64_t inputs) {
  const bool codes = format == WeightFormat::int8 || format == WeightFormat::int4;
  const bool plain = role == Role::router_matrix || !quantizable(inputs);
  return codes && plain ? WeightFormat::bf16 : format;
}

// Random rows of each format and length.
class Pool {
 public:
  explicit Pool(Context& ctx) : ctx_(ctx) {}

  // To copy into a weight like this.
  const Weight& rows(const Weight& like) {
    const WeightFormat format = like.format();
    const int64_t inputs = like.columns();
    const auto found = rows_.find({format, inputs});
    if (found != rows_.end()) return found->second.weight;
    Rows& rows = rows_[{format, inputs}];
    Arena plan, values(static_cast<size_t>(kPoolRows * inputs) * sizeof(float));
    plan_weight(plan, format, kPoolRows, inputs);
    rows.memory = Arena(plan.peak());
    rows.weight = plan_weight(rows.memory, format, kPoolRows, inputs);
    const Tensor drawn = values.tensor(DType::f32, {kPoolRows, inputs});
    fill_normal(ctx_, drawn.reshaped({drawn.size()}), static_cast<uint64_t>(inputs), 0, 0.02f);
    if (rows.weight.quantized())
      quantize(ctx_, rows.weight, drawn);
    else
      convert(ctx_, rows.weight.values, drawn);
    return rows.weight;
  }

 private:
  struct Rows {
    Arena memory;
    Weight weight;
  };
  Context& ctx_;
  std::map<std::pair<WeightFormat, int64_t>, Rows> rows_;
};

void copy_row(const Tensor& to, int64_t to_row, const Tensor& from, int64_t from_row) {
  std::memcpy(to.address(to_row), from.address(from_row),
              static_cast<size_t>(to.columns()) * size_of(to.dtype));
}

void fill(const Weight& to, const Weight& pool, uint64_t seed) {
  const Random random(seed, "pool rows");
  parallel_ranges(to.rows(), kRowsAtATime, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const auto row = static_cast<int64_t>(random.below(static_cast<uint64_t>(n), kPoolRows));
      copy_row(to.values, n, pool.values, row);
      if (to.scales) copy_row(to.scales, n, pool.scales, row);
    }
  });
}

// Logical matrices of a parameter: rows and inputs of each, and how many.
struct Matrices {
  int64_t count, rows, inputs;
};
Matrices matrices_of(const ParameterSpec& spec) {
  const Shape& shape = spec.shape;
  const int64_t inputs = shape[shape.rank() - 1];
  return spec.per_expert ? Matrices{shape[0], shape[1], inputs} : Matrices{1, shape[0], inputs};
}

template <class F>
void for_each_matrix(const ModelConfig& config, Arena& arena, WeightFormat format, F&& f) {
  const std::vector<ParameterSpec> specs = parameter_specs(config);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!is_read_in_place(specs[i].role)) continue;
    const Matrices m = matrices_of(specs[i]);
    for (int64_t e = 0; e < m.count; ++e)
      f(i, plan_weight(arena, format_for(format, specs[i].role, m.inputs), m.rows, m.inputs));
  }
}

}  // namespace

int64_t random_model_bytes(const ModelConfig& config, WeightFormat format) {
  Arena plan;
  for_each_matrix(config, plan, format, [](size_t, const Weight&) {});
  for (const ParameterSpec& spec : parameter_specs(config))
    if (!is_read_in_place(spec.role)) plan.tensor(DType::f32, spec.shape);
  return static_cast<int64_t>(plan.peak());
}

Zaya random_model(Context& ctx, const ModelConfig& config, WeightFormat format, DType compute) {
  Parameters parameters = Parameters::to_run(config);
  Arena plan;
  for_each_matrix(config, plan, format, [](size_t, const Weight&) {});
  const auto memory = std::make_shared<Arena>(plan.peak());
  Pool pool(ctx);
  uint64_t seed = 0;
  for_each_matrix(config, *memory, format, [&](size_t parameter, const Weight& weight) {
    fill(weight, pool.rows(weight), ++seed);
    parameters.all()[parameter].matrices.push_back(weight);
  });
  parameters.keep(memory);
  parameters.initialize(ctx, 1);
  return Zaya(config, compute, std::move(parameters));
}

}  // namespace zaya
