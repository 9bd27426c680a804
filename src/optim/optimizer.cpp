#include "optim/optimizer.h"

#include <cmath>

#include "optim/balancing.h"
#include "ops/optim/adamw.h"
#include "ops/optim/sum_squares.h"

namespace zaya {
namespace {

bool uses_muon(Role role, const OptimizerSettings& settings) {
  return role == Role::matrix ||
         (role == Role::router_matrix && settings.router == RouterOptimizer::muon);
}

Tensor flat(const Tensor& x) { return x.reshaped({x.size()}); }

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

bool Optimizer::uses_muon(Role role) const { return zaya::uses_muon(role, settings_); }

Optimizer::Optimizer(Parameters& parameters, const OptimizerSettings& settings)
    : parameters_(parameters), settings_(settings) {
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
  for (const OptimizerState& state : states_)
    if (uses_muon(state.parameter->spec.role)) append_matrices(matrices_, state);
}

int64_t Optimizer::bytes(const ModelConfig& config, const OptimizerSettings& settings) {
  int64_t bytes = 0;
  for (const ParameterSpec& spec : parameter_specs(config))
    bytes += 4 * spec.shape.size() * (zaya::uses_muon(spec.role, settings) ? 1 : 2);
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
  const bool decays = role == Role::matrix || role == Role::router_matrix ||
                      (role == Role::embedding && settings_.decay_embeddings);
  return decays ? settings_.weight_decay : 0.0f;
}

void Optimizer::update(Context& ctx, const LearningRates& rates, double gradient_norm) {
  ++updates_;
  const float clip =
      settings_.clip_norm > 0 && gradient_norm > settings_.clip_norm
          ? static_cast<float>(static_cast<double>(settings_.clip_norm) / gradient_norm)
          : 1.0f;
  muon_update(ctx, matrices_, {rates.muon, settings_.momentum, settings_.nesterov,
                               settings_.weight_decay, clip});
  for (const OptimizerState& state : states_) {
    const Parameter& p = *state.parameter;
    const Role role = p.spec.role;
    if (uses_muon(role)) continue;
    const bool balancing = role == Role::router_bias;
    const float rate = balancing                 ? rates.balancing
                       : role == Role::embedding ? rates.embedding
                                                 : rates.adamw;
    adamw_update(ctx, flat(p.weight), flat(state.first), flat(state.second), flat(p.gradient),
                 {rate, settings_.beta1, settings_.beta2, settings_.eps, weight_decay(role),
                  balancing ? 1.0f : clip, updates_});
  }
  parameters_.refresh_compute(ctx);
}

}  // namespace zaya
