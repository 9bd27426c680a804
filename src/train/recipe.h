#pragma once
// A recipe: everything a training run is, read from TOML. The descriptions are in recipe_fields.h,
// the documentation made from them is docs/recipe.md.
//
// Paths in a recipe are relative to the directory `zaya` is started in, not to the recipe's folder:
// the resolved recipe that a run keeps in its own folder then means the same as the original.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/fields.h"
#include "model/config.h"
#include "optim/optimizer_config.h"

namespace zaya {

enum class Precision { automatic, f32, bf16 };
constexpr auto enum_names(Precision) {
  return std::to_array<std::string_view>({"auto", "f32", "bf16"});
}

struct TokenizerConfig {
  std::string path;
};

struct DataSource {
  std::string name;
  std::string path;
  double weight = 1;
  int64_t holdout_every = 0;
};

struct ValidationSource {
  std::string name;
  std::string path;
};

struct ValidationConfig {
  int64_t every = 0;
  int64_t tokens = 0;
  std::vector<ValidationSource> sources;
};

struct Phase {
  std::string name;
  int64_t tokens = 0;  // one of tokens and steps is given
  int64_t steps = 0;
  int64_t seq_len = 0;
  double rotary_base = 0;  // 0 until resolved: the model's
  int64_t batch_tokens = 0;
  int64_t batch_tokens_start = 0;
  int64_t ramp_tokens = 0;
  int64_t micro_batch_tokens = 0;  // 0 until resolved: batch_tokens
  double learning_rate_factor = 1;
  bool restart_schedule = false;
  fields::NumberMap mixture;  // empty until resolved: the sources' weights
  bool mask_documents = true;

  int64_t batch_rows() const { return batch_tokens / seq_len; }
  int64_t micro_batch_rows() const { return micro_batch_tokens / seq_len; }
};

struct CheckpointConfig {
  int64_t every = 500;
  int64_t keep = 2;
};

struct MetricsConfig {
  bool tensorboard = true;
  double progress_seconds = 10;
};

struct Recipe {
  std::string name = "run";
  uint64_t seed = 0;
  int64_t max_steps = 0;
  Precision dtype = Precision::automatic;
  int threads = 0;
  ModelConfig model;
  TokenizerConfig tokenizer;
  std::vector<DataSource> data;
  ValidationConfig validation;
  std::vector<Phase> phases;
  OptimizerConfig optimizer;
  CheckpointConfig checkpoint;
  MetricsConfig metrics;

  // True when anything is validated on: sources of their own, or held-out documents.
  bool validates() const { return validation.every > 0; }
};

// Reads a recipe, applies "path=value" overrides, fills in what depends on other fields, and
// refuses what does not fit together. Throws Error "FILE: PATH: wanted ..., got ... (line N)".
Recipe load_recipe(const std::string& path, std::span<const std::string> overrides = {});
// The same from text; `name` stands for the file in messages.
Recipe parse_recipe(std::string_view text, const std::string& name,
                    std::span<const std::string> overrides = {});

// The resolved recipe as TOML, which load_recipe reads back to an equal one.
std::string recipe_text(const Recipe& recipe);
// The same as JSON text, for a checkpoint's manifest.
std::string recipe_json(const Recipe& recipe);

// What changed between two recipes that would change the numbers of a run (all but name, threads,
// max_steps, validation, checkpoint and metrics), one line a field: "optimizer.clip_norm: 1.0
// became 2.0". Takes recipe_json() texts.
std::vector<std::string> recipe_changes(const std::string& before, const std::string& after);

// The documentation of every key, docs/recipe.md's generated part.
std::string recipe_docs();

}  // namespace zaya
