#pragma once
// AdamW (Loshchilov and Hutter 2019), in place, each state read and written once:
//   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//   w -= lr * (m / (1 - b1^step) / (sqrt(v / (1 - b2^step)) + eps) + weight_decay * w)
// with g = gradient * gradient_scale. All tensors f32 of one size.

#include <cstdint>

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

struct AdamWSettings {
  float learning_rate = 0;
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float eps = 1e-8f;
  float weight_decay = 0;
  float gradient_scale = 1;  // from clipping by the global norm
  int64_t step = 1;          // counts from 1
};

void adamw_update(Context& ctx, const Tensor& weight, const Tensor& first_moment,
                  const Tensor& second_moment, const Tensor& gradient,
                  const AdamWSettings& settings);

}  // namespace zaya
