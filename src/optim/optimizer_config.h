#pragma once
// What a recipe says about the optimizers: its [optimizer] table.
//
// Which parameter goes where (zaya1.md leaves convolutions and router matrices open; this is our
// choice): matrices to Muon, each logical matrix apart; router matrices to router_optimizer;
// embeddings, head, vectors and convolutions to AdamW; balancing biases to AdamW with their own
// learning rate, from token counts. Weight decay falls on matrices and router matrices, and on
// embeddings and head by a value of their own; never on vectors, convolutions and biases.

#include "core/fields.h"
#include "optim/schedule.h"

namespace zaya {

enum class RouterOptimizer { muon, adamw };
constexpr auto enum_names(RouterOptimizer) {
  return std::to_array<std::string_view>({"muon", "adamw"});
}

struct OptimizerConfig {
  double muon_learning_rate = 2e-3;
  double adamw_learning_rate = 2e-3;
  double embedding_learning_rate = 2e-3;
  double router_learning_rate = 5e-4;
  double balancing_learning_rate = 1e-3;
  RouterOptimizer router_optimizer = RouterOptimizer::muon;

  double weight_decay = 0.1;
  double embedding_weight_decay = 0;
  double muon_momentum = 0.95;
  bool nesterov = true;
  double adamw_beta1 = 0.9;
  double adamw_beta2 = 0.95;
  double adamw_eps = 1e-8;

  double clip_norm = 1;
  double spike_factor = 0;
  int64_t spike_warmup_steps = 100;

  ScheduleKind schedule = ScheduleKind::wsd;
  int64_t warmup_steps = 0;
  int64_t warmup_tokens = 0;
  double decay_fraction = 0.2;
  double final_fraction = 0.1;
};

template <class V>
void describe(V& v, OptimizerConfig& c) {
  v.field("muon_learning_rate", c.muon_learning_rate,
          "peak learning rate of Muon; its updates are scaled to the size of AdamW's",
          greater_than(0));
  v.field("adamw_learning_rate", c.adamw_learning_rate,
          "peak learning rate of vectors and convolutions", greater_than(0));
  v.field("embedding_learning_rate", c.embedding_learning_rate,
          "peak learning rate of the embedding table and an untied head (AdamW)", greater_than(0));
  v.field(
      "router_learning_rate", c.router_learning_rate,
      "peak learning rate of the router's matrices, under either optimizer: a router that moves "
      "fast is sure of its choices before the balancing biases can follow",
      greater_than(0));
  v.field(
      "balancing_learning_rate", c.balancing_learning_rate,
      "learning rate of the balancing biases, the same in every step; 0 leaves them as they are",
      at_least(0));
  v.field("router_optimizer", c.router_optimizer, "which optimizer moves the router's matrices");
  v.field("weight_decay", c.weight_decay, "decoupled decay of matrices and router matrices",
          at_least(0));
  v.field("embedding_weight_decay", c.embedding_weight_decay,
          "decoupled decay of the embedding table and an untied head", at_least(0));
  v.field("muon_momentum", c.muon_momentum, "Muon's momentum", in_half_open(0, 1));
  v.field("nesterov", c.nesterov, "Nesterov momentum in Muon");
  v.field("adamw_beta1", c.adamw_beta1, "AdamW's first-moment decay", in_half_open(0, 1));
  v.field("adamw_beta2", c.adamw_beta2, "AdamW's second-moment decay", in_half_open(0, 1));
  v.field("adamw_eps", c.adamw_eps, "AdamW's epsilon", greater_than(0));
  v.field("clip_norm", c.clip_norm,
          "gradients are scaled down to this global norm; 0 leaves them as they are", at_least(0));
  v.field("spike_factor", c.spike_factor,
          "a step whose gradient norm exceeds this many times its running mean is skipped; 0: none "
          "is",
          at_least(0));
  v.field("spike_warmup_steps", c.spike_warmup_steps,
          "steps that only feed the running mean before spikes are looked for", at_least(1));
  v.field("schedule", c.schedule,
          "how the learning rates move: warmup-stable-decay, cosine or constant, over all phases "
          "up to the next restart_schedule");
  v.field("warmup_steps", c.warmup_steps, "steps of the linear warm-up", at_least(0));
  v.field("warmup_tokens", c.warmup_tokens, "or: tokens of the linear warm-up", at_least(0));
  v.field("decay_fraction", c.decay_fraction, "wsd: share of the steps, at the end, that decay",
          between(0, 1));
  v.field("final_fraction", c.final_fraction,
          "wsd and cosine: share of the peak that the learning rates end at", between(0, 1));
}

}  // namespace zaya
