#pragma once
// A model folder: config.json and model.safetensors (or shards with an index), in either layout,
// its weights float or codes.

#include <optional>

#include "checkpoint/layout.h"
#include "checkpoint/safetensors.h"
#include "model/zaya.h"

namespace zaya {

// Throws one Error that lists all that is missing, extra, misshapen or of an unusable type. Reads
// headers only (a config.json that promises more than the tensors hold costs no memory), and of a
// head that is stored beside the embeddings it is tied to, the bytes, which must be theirs.
void check_tensors(const ModelConfig& config, const StoredForm& form, const TensorFolder& folder);

// What a folder that check_tensors has passed holds of a parameter: views of its tensors, one, or
// in the original layout's experts one for each expert.
std::vector<Weight> stored_weights(const ParameterSpec& spec, const ModelConfig& config,
                                   const StoredForm& form, const TensorFolder& folder);

// Copies every parameter from a folder that check_tensors has passed into the f32 masters: F32,
// BF16 and F16 tensors widened, codes times their scales. Error for values that are not finite.
void load_parameters(Context& ctx, Parameters& parameters, const ModelConfig& config,
                     const StoredForm& form, const TensorFolder& folder);

// A model with f32 masters, to train on or to compare with references.
Zaya load_model(Context& ctx, const std::filesystem::path& folder, DType compute,
                Gradients gradients);

struct OpenOptions {
  // The format of activations: f32 or bf16. Not said: f32 for weights in f32, bf16 for others.
  std::optional<DType> compute;
};

// A model to run. Matrices and embeddings stay where they are in the mapped files, f32, bf16 or
// codes, read when they are first used and shared with every process that runs the model; F16 is
// widened to f32 in memory. Those that stay are not searched for values that are not finite, which
// would read them all; everything else is.
Zaya open_model(Context& ctx, const std::filesystem::path& folder, const OpenOptions& options);

// Writes the masters as `dtype` (f32 or bf16) under HF's names.
FileSums save_parameters(const std::filesystem::path& file, const Parameters& parameters,
                         DType dtype);

}  // namespace zaya
