#pragma once
// A model folder as HF lays it out: config.json and model.safetensors (or shards with an index).

#include "checkpoint/safetensors.h"
#include "model/zaya.h"

namespace zaya {

// Throws one Error that lists all that is missing, extra, misshapen or of an unusable type. Reads
// headers only: a config.json that promises more than the tensors hold costs no memory.
void check_tensors(const ModelConfig& config, const TensorFolder& folder);

// Copies every parameter from a folder that check_tensors has passed. F32, BF16 and F16 tensors are
// widened to the f32 masters.
void load_parameters(Context& ctx, Parameters& parameters, const TensorFolder& folder);

// A model opened to run or (with gradients) to train on.
Zaya load_model(Context& ctx, const std::filesystem::path& folder, DType compute,
                Gradients gradients);

// Writes the masters as `dtype` (f32 or bf16) under HF's names.
FileSums save_parameters(const std::filesystem::path& file, const Parameters& parameters,
                         DType dtype);

}  // namespace zaya
