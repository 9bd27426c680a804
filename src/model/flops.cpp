#include "model/flops.h"

#include <algorithm>

namespace zaya {
namespace {

// Pairs of a query and a key it sees, over one block.
double visible_pairs(const TokenBatch& batch, int64_t window) {
  double pairs = 0;
  for (const AttentionSpan& span : batch.spans()) {
    // Query i of n sees n_before + i + 1 keys, but no more than the window.
    const double before = static_cast<double>(span.k_length - span.q_length);
    const double n = static_cast<double>(span.q_length);
    const double most = window > 0 ? static_cast<double>(window) : before + n;
    const double growing = std::clamp(most - before, 0.0, n);
    pairs += growing * before + growing * (growing + 1) / 2 + (n - growing) * most;
  }
  return pairs;
}

}  // namespace

std::array<double, kOpGroups> training_flops(const ModelConfig& c, const TokenBatch& batch,
                                             int64_t expert_tokens) {
  const double T = static_cast<double>(batch.tokens());
  const double D = static_cast<double>(c.hidden_size), d = static_cast<double>(c.head_dim);
  const double C = static_cast<double>(c.qk_channels()),
               R = static_cast<double>(c.router_hidden_size);
  const double q = static_cast<double>(c.query_channels()),
               k = static_cast<double>(c.key_channels());
  const double blocks = static_cast<double>(c.num_hidden_layers);

  std::array<double, kOpGroups> multiply_adds{};
  const auto group = [&](OpGroup g) -> double& { return multiply_adds[static_cast<size_t>(g)]; };
  group(OpGroup::projections) = blocks * T * D * (q + 2 * k + q);
  group(OpGroup::convolutions) =
      blocks * T * C * (static_cast<double>(c.cca_time0) + d * static_cast<double>(c.cca_time1));
  for (int64_t block = 0; block < c.num_hidden_layers; ++block)
    group(OpGroup::attention) += 2 * q * visible_pairs(batch, c.window(block));
  group(OpGroup::router) = blocks * T * R * (D + 2 * R + static_cast<double>(c.router_classes()));
  group(OpGroup::experts) =
      static_cast<double>(expert_tokens) * 3 * D * static_cast<double>(c.moe_intermediate_size);
  group(OpGroup::head) = T * D * static_cast<double>(c.vocab_size);
  for (double& flops : multiply_adds) flops *= 2 * 3;
  return multiply_adds;
}

}  // namespace zaya
