#include "optim/optimizer.h"

#include <cmath>

#include "backend/cpu/instruction_set.h"
#include "ops/optim/adamw.h"
#include "ops/optim/sum_squares.h"
#include "optim/balancing.h"

namespace zaya {
namespace {

bool uses_muon(Role role, const OptimizerConfig& config) {
  return role == Role::matrix ||
         (role == Role::router_matrix && config.router_optimizer == RouterOptimizer::muon);
}

Tensor flat(const Tensor& x) { return x.reshaped({x.size()}); }

float rate_of(Role role, const LearningRates& rates) {
  switch (role) {
    case Role::matrix:
      return rates.muon;
    case Role::router_matrix:
      return rates.router;
    case Role::embedding:
      return rates.embedding;
    case Role::router_bias:
      return rates.balancing;
    case Role::vector:
    case Role::conv:
      return rates.adamw;
  }
  return rates.adamw;
}

// The logical matrices of one parameter, each with its share of the momentum.
void append_matrices(std::vector<MuonMatrix>& matrices, const OptimizerState& state) {
  const Parameter& p = *state.parameter;
  const int64_t rows = p.spec.matrix_rows;
  for (int64_t begin = 0; begin < p.weight.rows(); begin += rows)
    matrices.push_back({p.weight.row_range(begin, begin + rows),
                        state.first.row_range(begin, begin + rows),
                        p.gradient.row_range(begin, begin + rows)});
}

}  // namespace

bool Optimizer::uses_muon(Role role) const { return zaya::uses_muon(role, config_); }

Optimizer::Optimizer(Parameters& parameters, const OptimizerConfig& config)
    : parameters_(parameters), config_(config) {
  Arena plan;
  const auto carve = [&](Arena& arena) {
    std::vector<OptimizerState> states;
    for (Parameter& p : parameters.all()) {
      OptimizerState state{&p, arena.tensor(DType::f32, p.spec.shape), {}};
      if (!uses_muon(p.spec.role)) state.second = arena.tensor(DType::f32, p.spec.shape);
      states.push_back(state);
    }
    return states;
  };
  carve(plan);
  memory_ = Arena(plan.peak());
  states_ = carve(memory_);
  for (const OptimizerState& state : states_) {
    const Role role = state.parameter->spec.role;
    if (uses_muon(role))
      append_matrices(role == Role::router_matrix ? router_matrices_ : matrices_, state);
    if (role == Role::matrix) products_ = multiplied_format(state.parameter->matrix().values.dtype);
  }
}

int64_t Optimizer::bytes(const ModelConfig& model, const OptimizerConfig& config) {
  int64_t bytes = 0;
  for (const ParameterSpec& spec : parameter_specs(model))
    bytes += 4 * spec.shape.size() * (zaya::uses_muon(spec.role, config) ? 1 : 2);
  return bytes;
}

double Optimizer::gradient_norm(Context& ctx) const {
  double sum = 0;
  for (const OptimizerState& state : states_)
    if (state.parameter->spec.role != Role::router_bias)
      sum += sum_squares(ctx, flat(state.parameter->gradient));
  return std::sqrt(sum);
}

void Optimizer::set_balancing_gradients(std::span<const std::vector<int64_t>> counts) {
  size_t block = 0;
  for (const OptimizerState& state : states_) {
    if (state.parameter->spec.role != Role::router_bias) continue;
    ZAYA_REQUIRE(block < counts.size());
    balancing_gradient(state.parameter->gradient, counts[block++]);
  }
  ZAYA_REQUIRE(block == counts.size());
}

float Optimizer::weight_decay(Role role) const {
  if (role == Role::matrix || role == Role::router_matrix)
    return static_cast<float>(config_.weight_decay);
  return role == Role::embedding ? static_cast<float>(config_.embedding_weight_decay) : 0.0f;
}

MuonSettings Optimizer::muon_settings(float learning_rate, float clip, DType products) const {
  return {.learning_rate = learning_rate,
          .momentum = static_cast<float>(config_.muon_momentum),
          .nesterov = config_.nesterov,
          .weight_decay = static_cast<float>(config_.weight_decay),
          .gradient_scale = clip,
          .products = products};
}

void Optimizer::update(Context& ctx, const LearningRates& rates, double gradient_norm) {
  ++updates_;
  const float clip = config_.clip_norm > 0 && gradient_norm > config_.clip_norm
                         ? static_cast<float>(config_.clip_norm / gradient_norm)
                         : 1.0f;
  muon_update(ctx, matrices_, muon_settings(rates.muon, clip, products_));
  muon_update(ctx, router_matrices_, muon_settings(rates.router, clip, DType::f32));
  for (const OptimizerState& state : states_) {
    const Parameter& p = *state.parameter;
    const Role role = p.spec.role;
    if (uses_muon(role)) continue;
    const bool balancing = role == Role::router_bias;
    adamw_update(ctx, flat(p.weight), flat(state.first), flat(state.second), flat(p.gradient),
                 {rate_of(role, rates), static_cast<float>(config_.adamw_beta1),
                  static_cast<float>(config_.adamw_beta2), static_cast<float>(config_.adamw_eps),
                  weight_decay(role), balancing ? 1.0f : clip, updates_});
  }
  parameters_.refresh_compute(ctx);
}

}  // namespace zaya
