#pragma once
// What a training checkpoint holds: a model folder that any tool opens (config.json,
// model.safetensors in f32, the tokenizer), optimizer.safetensors, recipe.toml, and in the manifest
// the trainer's counters.

#include "checkpoint/checkpoint_dir.h"
#include "data/tokenizer.h"
#include "model/zaya.h"
#include "optim/optimizer.h"
#include "train/recipe.h"

namespace zaya {

// Everything the step loop carries from one step to the next, besides tensors.
struct TrainState {
  int64_t step = 0;    // steps done
  int64_t tokens = 0;  // tokens consumed
  uint64_t sample_digest = 0;
  int64_t optimizer_updates = 0;
  int64_t skipped_steps = 0;
  double norm_mean = 0;  // running mean of accepted gradient norms
  int64_t norm_count = 0;
};

// Writes one checkpoint and returns its folder.
fs::path save_checkpoint(const fs::path& run_dir, const Recipe& recipe, const Tokenizer& tokenizer,
                         Zaya& model, Optimizer& optimizer, const TrainState& state);

// Reads a checkpoint into a model and an optimizer of the same shape, and returns the counters.
// Error when the checkpoint's recipe or tokenizer would change the numbers of the run.
TrainState load_checkpoint(Context& ctx, const fs::path& checkpoint, const Recipe& recipe,
                           const Tokenizer& tokenizer, Zaya& model, Optimizer& optimizer);

// Bytes one checkpoint takes, to be reserved before the first step.
uint64_t checkpoint_bytes(const ModelConfig& config, const OptimizerConfig& optimizer,
                          const Tokenizer& tokenizer);

}  // namespace zaya
