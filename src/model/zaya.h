#pragma once
// The whole model: forward, loss and backward over a batch, in single-device prose.

#include <memory>
#include <vector>

#include "model/block.h"
#include "model/head.h"

namespace zaya {

// Everything a forward pass leaves behind for T tokens.
struct Activations {
  Tensor x;  // [T, D] f32, the embedded tokens
  std::vector<BlockSaved> blocks;
  HeadSaved head;
};

class Zaya {
 public:
  // compute: f32 or bf16, the format of activations and of the weights in products.
  Zaya(const ModelConfig& config, DType compute, Gradients gradients);
  // With parameters that are there already: those of a model that only runs have formats of their
  // own, and `compute` is that of activations alone.
  Zaya(const ModelConfig& config, DType compute, Parameters parameters);

  const ModelConfig& config() const { return config_; }
  DType compute() const { return compute_; }
  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }
  const std::vector<BlockParameters>& blocks() const { return blocks_; }
  const HeadParameters& head() const { return head_; }
  // The rotary base of full-attention blocks from now on (phases change it).
  void set_rotary_base(double base);

  // Fills activations() with what the batch leaves in every block, logits not included. Tokens are
  // in [0, vocab_size).
  void forward(Context& ctx, const TokenBatch& batch);
  // After forward: the loss of every token, in activations().head.losses; returns their sum.
  double losses(Context& ctx, const TokenBatch& batch);
  // forward, losses, and gradients of loss_scale * (sum of losses): they add to what is there.
  double forward_backward(Context& ctx, const TokenBatch& batch, float loss_scale);
  // After forward: logits [n, V] f32 of tokens [begin, begin + n).
  void logits(Context& ctx, const Tensor& logits, int64_t begin);

  const Activations& activations() const { return activations_; }
  // What forward is made of, for a decoder that keeps other activations:
  // x [T, D] f32 of ids [T] i32, and in `first` its norm, which the first block reads;
  void embed(Context& ctx, const Tensor& x, const BlockSaved& first, const Tensor& ids) const;
  // and the norm that follows `block`: that of the block after it, saved in `next`, or the head's.
  NormAfter norm_after(int64_t block, const BlockSaved& next, const HeadSaved& head) const;

  // Bytes of activations and scratch for forward_backward over T tokens in S sequences.
  static int64_t activation_bytes(const ModelConfig& config, DType compute, int64_t T, int64_t S);
  // The temporaries among them: alive together at the deepest point of forward_backward.
  static int64_t scratch_bytes(const ModelConfig& config, DType compute, int64_t T, int64_t S);

 private:
  void reserve(const TokenBatch& batch);
  void first_norm_backward(Context& ctx, const Tensor& dx, const Tensor& dh) const;
  NormAfter norm_after(int64_t block) const;
  AttentionInputs attention_inputs(const TokenBatch& batch, int64_t block) const;

  ModelConfig config_;
  DType compute_;
  Parameters parameters_;
  std::vector<BlockParameters> blocks_;
  HeadParameters head_;
  struct {
    Parameter *table, *bias, *scale;
  } embedding_;

  Arena rotary_memory_;
  RotaryTables full_, sliding_;
  Arena memory_;                                          // activations
  Arena scratch_;                                         // temporaries of one op or module
  int64_t reserved_tokens_ = 0, reserved_sequences_ = 0;  // what memory_ can hold
  int64_t planned_tokens_ = 0, planned_sequences_ = 0;    // what activations_ is laid out for
  Activations activations_;
};

// Tables for positions [0, count), full and sliding blocks' bases, carved from `arena`.
std::pair<RotaryTables, RotaryTables> plan_rotary(Arena& arena, const ModelConfig& config,
                                                  int64_t count);

}  // namespace zaya
