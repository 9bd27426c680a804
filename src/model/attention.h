#pragma once
// Compressed convolutional attention (CCA, arXiv 2510.04476; zaya1.md section 2).
// T tokens, D hidden, nq query and nk key heads of d channels, C = (nq + nk) d.

#include "core/arena.h"
#include "model/batch.h"
#include "model/parameters.h"

namespace zaya {

struct AttentionParameters {
  Parameter* q_proj;          // [nq d, D]
  Parameter* k_proj;          // [nk d, D]
  Parameter* v_proj_current;  // [nk d / 2, D]
  Parameter* v_proj_delayed;  // [nk d / 2, D]
  Parameter* depthwise;       // [C, 1, time0]
  Parameter* depthwise_bias;  // [C]
  Parameter* grouped;         // [C, d, time1]
  Parameter* grouped_bias;    // [C]
  Parameter* temp;            // [nk]
  Parameter* o_proj;          // [D, nq d]
};

AttentionParameters attention_parameters(Parameters& parameters, int64_t block);

// cos and sin [positions, rotary / 2].
struct RotaryTables {
  Tensor cos;
  Tensor sin;
};

// What backward needs of forward. A: the activation format, f32 or bf16.
struct AttentionSaved {
  Tensor qk0;        // [T, C] A, concat(q0, k0)
  Tensor depthwise;  // [T + S (time1 - 1), C] A
  Tensor z;          // [T, C] f32, after both convolutions
  Tensor q;          // [T, nq d] A
  Tensor k, v;       // [T, nk d] A
  Tensor mixed;      // [T, nq d] A, attention's output before o_proj
  Tensor lse;        // [T, nq] f32
};

AttentionSaved plan_attention(Arena& arena, const ModelConfig& config, DType activation, int64_t T,
                              int64_t S);

// What a decoder keeps for one block: keys and values of all its sequences, by its own rows; and of
// the S sequences that go on, in their order, what their convolutions and value shift look back at.
struct AttentionMemory {
  Tensor keys, values;   // [rows, nk d] A
  Tensor conv_rows;      // [S, P, C] A: the last P rows of concat(q0, k0)
  Tensor delayed_value;  // [S, 1, nk d / 2] A: v_proj_delayed h of the last token
};

struct AttentionInputs {
  const TokenBatch* batch;
  RotaryTables rotary;
  int64_t window;  // 0: full attention
  // With it: sequences that go on after what it holds (TokenBatch::set_continuations).
  const AttentionMemory* memory = nullptr;
};

// out [T, D] A;  h [T, D] A.
void attention_forward(Context& ctx, const ModelConfig& config, const AttentionParameters& weights,
                       const Tensor& out, AttentionSaved& saved, const Tensor& h,
                       const AttentionInputs& inputs, Arena& scratch);

// dh [T, D] f32: overwritten. Parameter gradients add.   dout [T, D] A.
void attention_backward(Context& ctx, const ModelConfig& config, const AttentionParameters& weights,
                        const Tensor& dh, const Tensor& dout, const AttentionSaved& saved,
                        const Tensor& h, const AttentionInputs& inputs, Arena& scratch);

}  // namespace zaya
