#pragma once
// One block: attention, merge and the norm that follows; experts, merge and the norm that follows,
// which is the next block's, or the head's. T tokens, D hidden.

#include "model/attention.h"
#include "model/experts.h"
#include "ops/norm/merge_norm.h"

namespace zaya {

struct MergeParameters {
  Parameter* hidden_bias;
  Parameter* hidden_scale;
  Parameter* residual_bias;
  Parameter* residual_scale;

  MergeVectors weights() const;
  MergeVectors gradients() const;
};

struct BlockParameters {
  Parameter* input_norm;  // [D]
  AttentionParameters attention;
  MergeParameters attention_merge;
  Parameter* experts_norm;  // [D]
  ExpertsParameters experts;
  MergeParameters experts_merge;
};

BlockParameters block_parameters(Parameters& parameters, int64_t block);

// A: the activation format, f32 or bf16.
struct BlockSaved {
  Tensor input_rstd;  // [T]
  Tensor input_h;     // [T, D] A
  AttentionSaved attention;
  Tensor attention_out;  // [T, D] A
  Tensor middle;         // [T, D] f32, the residual stream after attention
  Tensor experts_rstd;   // [T]
  Tensor experts_h;      // [T, D] f32: the router reads it in full precision
  ExpertsSaved experts;
  Tensor experts_out;  // [T, D] A
  Tensor out;          // [T, D] f32, the residual stream after the block
};

BlockSaved plan_block(Arena& arena, const ModelConfig& config, DType activation, int64_t T,
                      int64_t S);

// The norm that reads the residual stream after a block.
struct NormAfter {
  Parameter* weight;  // [D]
  Tensor h;           // [T, D] A, written by the block's forward
  Tensor rstd;        // [T]
};

// x [T, D] f32: the residual stream before the block; saved.out holds it after. saved.input_h and
// input_rstd hold its norm already.
// router_state [T, R]: of the block before; null data in block 0.
void block_forward(Context& ctx, const ModelConfig& config, const BlockParameters& weights,
                   BlockSaved& saved, const NormAfter& after, const Tensor& x,
                   const Tensor& router_state, const AttentionInputs& attention, Arena& scratch);

// dx [T, D] f32: the gradient of saved.out on entry, of x on return, other than through the norms.
// dh [T, D] f32: the gradient of after.h on entry, of saved.input_h on return.
// drouter_state [T, R]: likewise for the router's state (router_backward).
void block_backward(Context& ctx, const ModelConfig& config, const BlockParameters& weights,
                    const Tensor& dx, const Tensor& dh, const Tensor& drouter_state,
                    const BlockSaved& saved, const NormAfter& after, const Tensor& x,
                    const Tensor& router_state, const AttentionInputs& attention, Arena& scratch);

}  // namespace zaya
