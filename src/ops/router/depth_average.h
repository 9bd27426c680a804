#pragma once
// The router's exponential depth averaging:  r = down + bias + previous * gamma, with the state
// `previous` of the block before (absent in block 0). T tokens, R router width. All f32.

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

// r [T, R]: holds Wdown h on entry, the router's state on return.   bias [R].
// previous [T, R] and gamma [R]: null data in block 0.
void depth_average_forward(Context& ctx, const Tensor& r, const Tensor& bias,
                           const Tensor& previous, const Tensor& gamma);

// dprevious [T, R]: overwritten with dr * gamma (may be dr itself).   dbias, dgamma [R]: add.
// dr [T, R].   In block 0 dprevious, dgamma, previous and gamma have null data.
void depth_average_backward(Context& ctx, const Tensor& dprevious, const Tensor& dbias,
                            const Tensor& dgamma, const Tensor& dr, const Tensor& previous,
                            const Tensor& gamma);

}  // namespace zaya
