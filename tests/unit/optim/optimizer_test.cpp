#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/instruction_set.h"
#include "ops/elementwise/elementwise.h"
#include "support/oracle.h"
#include "support/tiny_model.h"

namespace zaya {
namespace {

using test::tiny_config;
using test::tiny_model;
using test::values_of;

constexpr LearningRates kNone{};

void fill_gradients(Parameters& parameters, float value) {
  for (Parameter& p : parameters.all())
    std::fill_n(p.gradient.as<float>(), p.gradient.size(), value);
}

// Names of the parameters that an update with these rates moves, gradients being one everywhere.
std::vector<Role> moved_roles(const LearningRates& rates, const OptimizerConfig& config) {
  Context ctx;
  Zaya model = tiny_model(tiny_config());
  Optimizer optimizer(model.parameters(), config);
  fill_gradients(model.parameters(), 1.0f);
  std::vector<std::vector<float>> before;
  for (const Parameter& p : model.parameters().all()) before.push_back(values_of(p.weight));
  optimizer.update(ctx, rates, 1.0);
  std::vector<Role> moved;
  for (size_t i = 0; i < before.size(); ++i) {
    const Parameter& p = model.parameters().all()[i];
    if (values_of(p.weight) != before[i] &&
        std::find(moved.begin(), moved.end(), p.spec.role) == moved.end())
      moved.push_back(p.spec.role);
  }
  return moved;
}

TEST(Optimizer, EachRateMovesItsRoles) {
  const OptimizerConfig config;
  LearningRates rates = kNone;
  EXPECT_TRUE(moved_roles(rates, config).empty());
  rates.muon = 0.01f;
  EXPECT_EQ(moved_roles(rates, config), std::vector{Role::matrix});
  rates = {.router = 0.01f};
  EXPECT_EQ(moved_roles(rates, config), std::vector{Role::router_matrix});
  rates = {.embedding = 0.01f};
  EXPECT_EQ(moved_roles(rates, config), std::vector{Role::embedding});
  rates = {.balancing = 0.01f};
  EXPECT_EQ(moved_roles(rates, config), std::vector{Role::router_bias});
  rates = {.adamw = 0.01f};
  EXPECT_EQ(moved_roles(rates, config), (std::vector{Role::vector, Role::conv}));
}

TEST(Optimizer, RouterMatricesKeepOneMomentUnderMuonAndTwoUnderAdamW) {
  OptimizerConfig muon, adamw;
  muon.router_optimizer = RouterOptimizer::muon;
  adamw.router_optimizer = RouterOptimizer::adamw;
  int64_t router = 0;
  for (const ParameterSpec& spec : parameter_specs(tiny_config()))
    if (spec.role == Role::router_matrix) router += spec.shape.size();
  EXPECT_EQ(Optimizer::bytes(tiny_config(), adamw) - Optimizer::bytes(tiny_config(), muon),
            4 * router);
}

TEST(Optimizer, GradientNormLeavesOutTheBalancingBiases) {
  Context ctx;
  Zaya model = tiny_model(tiny_config());
  Optimizer optimizer(model.parameters(), {});
  fill_gradients(model.parameters(), 0.0f);
  model.parameters().find("model.norm.weight").gradient.as<float>()[3] = 3.0f;
  model.parameters().find("model.layers.1.mlp.gate.balancing_biases").gradient.as<float>()[0] = 9;
  EXPECT_DOUBLE_EQ(optimizer.gradient_norm(ctx), 3.0);
  model.parameters().find("model.norm.weight").gradient.as<float>()[0] = NAN;
  EXPECT_TRUE(std::isnan(optimizer.gradient_norm(ctx)));
}

TEST(Optimizer, BalancingLowersTheBiasOfABusyExpertAndLeavesTheSkipSlotAlone) {
  Context ctx;
  Zaya model = tiny_model(tiny_config());
  Optimizer optimizer(model.parameters(), {});
  fill_gradients(model.parameters(), 0.0f);
  const std::vector<std::vector<int64_t>> counts(3, {70, 10, 10, 10, 0});
  optimizer.set_balancing_gradients(counts);
  optimizer.update(ctx, {.balancing = 0.01f}, 0.0);
  const std::vector<float> bias =
      values_of(model.parameters().find("model.layers.2.mlp.gate.balancing_biases").weight);
  // The first AdamW step is one learning rate against the gradient's sign.
  EXPECT_NEAR(bias[0], -0.01, 1e-6);
  for (int e = 1; e < 4; ++e) EXPECT_NEAR(bias[e], 0.01, 1e-6);
  EXPECT_EQ(bias[4], -1.0f);
}

TEST(Optimizer, ClippingScalesTheGradientToTheNorm) {
  // Muon forgets the gradient's size, AdamW's first step too: look at a first moment instead.
  Context ctx;
  Zaya model = tiny_model(tiny_config());
  OptimizerConfig config;
  config.clip_norm = 2;
  Optimizer optimizer(model.parameters(), config);
  fill_gradients(model.parameters(), 1.0f);
  optimizer.update(ctx, kNone, 8.0);
  const auto norm = std::find_if(
      optimizer.states().begin(), optimizer.states().end(),
      [](const OptimizerState& s) { return s.parameter->spec.name == "model.norm.weight"; });
  EXPECT_NEAR(norm->first.as<float>()[0], 0.1 * 2.0 / 8.0, 1e-7);
}

// Steps of all Muon matrices of a role, end to end, in a model that computes in this format.
std::vector<double> muon_steps(Role role, DType compute) {
  Context ctx;
  Zaya model = tiny_model(tiny_config(), compute);
  OptimizerConfig config;
  config.router_optimizer = RouterOptimizer::muon;
  Optimizer optimizer(model.parameters(), config);
  uint64_t seed = 0;
  std::vector<double> steps;
  for (Parameter& p : model.parameters().all()) {
    fill_normal(ctx, p.gradient.reshaped({p.gradient.size()}), ++seed, 0, 1);
    if (p.spec.role != role) continue;
    for (const float w : values_of(p.weight)) steps.push_back(w);
  }
  optimizer.update(ctx, {.muon = 0.1f, .router = 0.1f}, 1.0);
  size_t i = 0;
  for (const Parameter& p : model.parameters().all()) {
    if (p.spec.role != role) continue;
    for (const float w : values_of(p.weight)) steps[i++] -= w;
  }
  return steps;
}

TEST(Optimizer, MuonMultipliesBf16WhereTheModelAndTheMachineDo) {
  const auto f32 = muon_steps(Role::matrix, DType::f32);
  const auto bf16 = muon_steps(Role::matrix, DType::bf16);
  EXPECT_EQ(f32 != bf16, multiplies_bf16());
  EXPECT_LT(test::relative_error(bf16, f32), 8e-2);  // rounding by up to 2^-9 in five steps
}

TEST(Optimizer, MuonKeepsTheRoutersMatricesInF32) {
  EXPECT_EQ(muon_steps(Role::router_matrix, DType::f32),
            muon_steps(Role::router_matrix, DType::bf16));
}

}  // namespace
}  // namespace zaya
