#pragma once
// The ZAYA1 router: a small network over a state that is averaged through the depth of the model
// (zaya1.md section 2). Everything in fp32. T tokens, D hidden, R router width, K = E + 1 classes.

#include "core/arena.h"
#include "model/parameters.h"

namespace zaya {

struct RouterParameters {
  Parameter* down_proj;         // [R, D]
  Parameter* down_proj_bias;    // [R]
  Parameter* states_scale;      // [R] gamma; null in block 0
  Parameter* norm;              // [R]
  Parameter* fc1;               // [R, R]
  Parameter* fc1_bias;          // [R]
  Parameter* fc2;               // [R, R]
  Parameter* fc2_bias;          // [R]
  Parameter* out_proj;          // [K, R]
  Parameter* balancing_biases;  // [K]
};

RouterParameters router_parameters(Parameters& parameters, int64_t block);

struct RouterSaved {
  Tensor state;             // [T, R] r, handed on to the next block
  Tensor rstd;              // [T]
  Tensor normed;            // [T, R]
  Tensor fc1, fc2;          // [T, R] before bias and gelu
  Tensor hidden1, hidden2;  // [T, R] after
  Tensor probabilities;     // [T, K]
  Tensor choice;            // [T] i32
  Tensor gate;              // [T] probability of the choice
};

RouterSaved plan_router(Arena& arena, const ModelConfig& config, int64_t T);

// h [T, D] f32.   previous [T, R]: the state of the block before; null data in block 0.
void router_forward(Context& ctx, const ModelConfig& config, const RouterParameters& weights,
                    const RouterSaved& saved, const Tensor& h, const Tensor& previous,
                    Arena& scratch);

// dh [T, D] f32: adds.   dstate [T, R]: the gradient of saved.state from the next block on entry
// (zero in the last); the gradient of `previous` on return (unchanged meaning in block 0: not
// used). dgate [T].  Parameter gradients add.
void router_backward(Context& ctx, const ModelConfig& config, const RouterParameters& weights,
                     const Tensor& dh, const Tensor& dstate, const Tensor& dgate,
                     const RouterSaved& saved, const Tensor& h, const Tensor& previous,
                     Arena& scratch);

}  // namespace zaya
