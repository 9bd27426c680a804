#include "train/train_checkpoint.h"

#include <bit>

#include "checkpoint/hf_config.h"
#include "checkpoint/hf_model.h"
#include "ops/elementwise/elementwise.h"

namespace zaya {
namespace {

struct StateTensor {
  std::string name;
  Tensor tensor;
};

// The optimizer's tensors under the names of their parameters.
std::vector<StateTensor> state_tensors(Optimizer& optimizer) {
  std::vector<StateTensor> tensors;
  for (const OptimizerState& state : optimizer.states()) {
    const std::string& name = state.parameter->spec.name;
    if (!state.second) {
      tensors.push_back({name + ".momentum", state.first});
    } else {
      tensors.push_back({name + ".first_moment", state.first});
      tensors.push_back({name + ".second_moment", state.second});
    }
  }
  return tensors;
}

FileSums save_optimizer(const fs::path& file, Optimizer& optimizer) {
  const std::vector<StateTensor> tensors = state_tensors(optimizer);
  std::vector<TensorDeclaration> declarations;
  for (const StateTensor& t : tensors) declarations.push_back({t.name, DType::f32, t.tensor.shape});
  SafetensorsWriter writer(file, std::move(declarations));
  for (const StateTensor& t : tensors) writer.add(t.name, t.tensor);
  return writer.finish();
}

void load_optimizer(Context& ctx, const fs::path& file, Optimizer& optimizer) {
  const SafetensorsFile tensors = SafetensorsFile::open(file);
  for (const StateTensor& t : state_tensors(optimizer)) {
    const Tensor stored = tensors.get(t.name);
    if (stored.dtype != DType::f32 || stored.shape != t.tensor.shape)
      fail("{}: {}: wanted F32 {}, got {} {}", file.string(), t.name, t.tensor.shape.to_string(),
           name_of(stored.dtype), stored.shape.to_string());
    convert(ctx, t.tensor, stored);
  }
}

// Doubles travel as their bits: a running mean must come back exactly.
Json to_json(const TrainState& s, const Recipe& recipe) {
  return {{"step", s.step},
          {"tokens", s.tokens},
          {"sample_digest", fmt::format("{:016x}", s.sample_digest)},
          {"optimizer_updates", s.optimizer_updates},
          {"skipped_steps", s.skipped_steps},
          {"norm_mean_bits", fmt::format("{:016x}", std::bit_cast<uint64_t>(s.norm_mean))},
          {"norm_count", s.norm_count},
          {"recipe", Json::parse(recipe_json(recipe))}};
}

uint64_t hex(const JsonObject& json, const char* key) {
  const std::string text = json.string(key);
  size_t used = 0;
  uint64_t value = 0;
  try {
    value = std::stoull(text, &used, 16);
  } catch (const std::exception&) {
  }
  if (used != text.size() || text.empty()) json.fail_wanted(key, "16 hexadecimal digits");
  return value;
}

TrainState state_from_json(const JsonObject& json) {
  return {json.integer("step"),          json.integer("tokens"),
          hex(json, "sample_digest"),    json.integer("optimizer_updates"),
          json.integer("skipped_steps"), std::bit_cast<double>(hex(json, "norm_mean_bits")),
          json.integer("norm_count")};
}

void refuse_changed_recipe(const fs::path& checkpoint, const JsonObject& state,
                           const Recipe& recipe) {
  const std::vector<std::string> changes =
      recipe_changes(json_text(state.object("recipe").value()), recipe_json(recipe));
  if (changes.empty()) return;
  std::string text = fmt::format(
      "{}: the recipe has changed since this checkpoint, so the run would not be the "
      "same one:",
      checkpoint.string());
  for (const std::string& change : changes) {
    text += "\n  " + change;
    if (change.starts_with("dtype:"))
      text += " (what auto comes to depends on the machine: --set dtype=... says which)";
  }
  text += "\nUndo the change, or start a new run with another --out.";
  throw Error(text);
}

// The recipe names a tokenizer by its path; what lies there may be another one by now.
void refuse_changed_tokenizer(const fs::path& checkpoint, const Tokenizer& tokenizer) {
  const fs::path kept = checkpoint / tokenizer.file_name();
  if (!fs::exists(kept) || read_file(kept) != tokenizer.file_bytes())
    fail(
        "{}: the tokenizer has changed since this checkpoint: wanted the one it holds; start a new "
        "run with another --out",
        checkpoint.string());
}

}  // namespace

fs::path save_checkpoint(const fs::path& run_dir, const Recipe& recipe, const Tokenizer& tokenizer,
                         Zaya& model, Optimizer& optimizer, const TrainState& state) {
  CheckpointWriter writer(run_dir, state.step);
  writer.add(save_parameters(writer.path_of("model.safetensors"), model.parameters(), DType::f32));
  writer.add(save_optimizer(writer.path_of("optimizer.safetensors"), optimizer));
  writer.add_bytes("config.json",
                   json_text(hf_config_to_json(model.config(), tokenizer.bos().value_or(-1),
                                               tokenizer.eos().value_or(-1), "float32"),
                             1) +
                       "\n");
  writer.add_bytes(tokenizer.file_name(), tokenizer.file_bytes());
  writer.add_bytes("recipe.toml", recipe_text(recipe));
  return writer.commit(to_json(state, recipe));
}

TrainState load_checkpoint(Context& ctx, const fs::path& checkpoint, const Recipe& recipe,
                           const Tokenizer& tokenizer, Zaya& model, Optimizer& optimizer) {
  const Manifest manifest = verify_checkpoint(checkpoint);
  const JsonObject json(manifest.state, (checkpoint / "manifest.json").string() + ": state");
  refuse_changed_recipe(checkpoint, json, recipe);
  refuse_changed_tokenizer(checkpoint, tokenizer);
  const TrainState state = state_from_json(json);
  const TensorFolder tensors = TensorFolder::open(checkpoint);
  check_tensors(model.config(), {}, tensors);
  load_parameters(ctx, model.parameters(), model.config(), {}, tensors);
  load_optimizer(ctx, checkpoint / "optimizer.safetensors", optimizer);
  optimizer.set_updates(state.optimizer_updates);
  return state;
}

uint64_t checkpoint_bytes(const ModelConfig& config, const OptimizerConfig& optimizer,
                          const Tokenizer& tokenizer) {
  // Headers and the manifest say a few lines about each tensor; the rest is config and recipe.
  const uint64_t small_files = 1024 * parameter_specs(config).size() + (uint64_t{128} << 10);
  return static_cast<uint64_t>(4 * count_parameters(config).total +
                               Optimizer::bytes(config, optimizer)) +
         small_files + tokenizer.file_bytes().size();
}

}  // namespace zaya
