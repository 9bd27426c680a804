#pragma once
// One optimizer step over all parameters, by role: Muon for hidden matrices, each logical matrix
// apart; AdamW for embeddings, vectors and convolutions; balancing biases by their load.

#include <vector>

#include "core/arena.h"
#include "model/parameters.h"
#include "ops/optim/muon.h"
#include "optim/optimizer_config.h"

namespace zaya {

// This step's learning rates, schedule included.
struct LearningRates {
  float muon = 0;
  float adamw = 0;
  float embedding = 0;
  float router = 0;
  float balancing = 0;
};

// The state of one parameter: what a checkpoint carries beside the weight.
struct OptimizerState {
  Parameter* parameter;
  Tensor first;   // momentum, or AdamW's first moment
  Tensor second;  // AdamW's second moment; null data under Muon
};

class Optimizer {
 public:
  Optimizer(Parameters& parameters, const OptimizerConfig& config);

  // Square root of the sum of squares of all gradients but the balancing biases'. Not finite when
  // any gradient is not.
  double gradient_norm(Context& ctx) const;
  // Writes the balancing biases' gradients p_e - 1 / E from `counts` (one i64 [E + 1] per block, in
  // order, of the whole global batch). The skip slot gets 0: its bias stays (zaya1.md, open).
  void set_balancing_gradients(std::span<const std::vector<int64_t>> counts);
  // Clips by `gradient_norm`, updates every parameter and refreshes the compute copies.
  void update(Context& ctx, const LearningRates& rates, double gradient_norm);

  // Updates done, for AdamW's bias correction.
  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }
  std::vector<OptimizerState>& states() { return states_; }

  // Bytes of state for a model.
  static int64_t bytes(const ModelConfig& model, const OptimizerConfig& config);

 private:
  bool uses_muon(Role role) const;
  float weight_decay(Role role) const;
  MuonSettings muon_settings(float learning_rate, float clip, DType products) const;

  Parameters& parameters_;
  OptimizerConfig config_;
  Arena memory_;
  std::vector<OptimizerState> states_;
  // Every logical matrix under Muon.
  std::vector<MuonMatrix> matrices_, router_matrices_;
  // What Muon multiplies for matrices_: bf16 where the model does, too, and the machine can. The
  // router's stay f32, as in the model.
  DType products_ = DType::f32;
  int64_t updates_ = 0;
};

}  // namespace zaya
