#pragma once
// A model with random weights in any format, to measure what does not depend on their values.

#include "model/zaya.h"

namespace zaya {

// A model that runs, its product weights held in `format`: rows drawn from a few thousand random
// ones, so that billions of weights take seconds. Vectors, convolutions and the router start as in
// training: tokens spread over the experts.
Zaya random_model(Context& ctx, const ModelConfig& config, WeightFormat format, DType compute);

// Bytes of such a model's weights.
int64_t random_model_bytes(const ModelConfig& config, WeightFormat format);

}  // namespace zaya
