#include "train/recipe_check.h"

#include <algorithm>
#include <set>

#include "train/plan.h"

namespace zaya {
namespace {

std::string text(int64_t value) { return fmt::format("{}", value); }

std::string element(const char* list, size_t i, const char* field) {
  return fmt::format("{}[{}].{}", list, i, field);
}

// sliding_layers is a pattern; the model wants one entry a block.
void repeat_sliding_pattern(ModelConfig& model, const TomlDocument& document) {
  const std::vector<bool> pattern = model.sliding_layers;
  if (pattern.empty()) return;
  const int64_t length = static_cast<int64_t>(pattern.size());
  if (model.num_hidden_layers % length != 0)
    document.fail_at(
        "model.sliding_layers",
        fmt::format("a length that divides num_hidden_layers ({})", model.num_hidden_layers),
        text(length));
  for (int64_t block = length; block < model.num_hidden_layers; ++block)
    model.sliding_layers.push_back(pattern[block % length]);
}

template <class T>
void check_names(const std::vector<T>& list, const char* list_name, const TomlDocument& document) {
  std::set<std::string> names;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!names.insert(list[i].name).second)
      document.fail_at(element(list_name, i, "name"), "a name that no other has",
                       fmt::format("\"{}\" again", list[i].name));
  }
}

void check_validation(const Recipe& recipe, const TomlDocument& document) {
  const auto held_out =
      std::find_if(recipe.data.begin(), recipe.data.end(),
                   [](const DataSource& source) { return source.holdout_every > 0; });
  const bool has_held_out = held_out != recipe.data.end();
  if (recipe.validates() && !has_held_out && recipe.validation.sources.empty())
    document.fail_at("validation.every",
                     "[[validation.sources]] or holdout_every on a data source to validate on",
                     "neither");
  if (recipe.validates()) return;
  if (has_held_out)
    document.fail_at(
        element("data", static_cast<size_t>(held_out - recipe.data.begin()), "holdout_every"),
        "0 where validation.every is 0", text(held_out->holdout_every));
  if (!recipe.validation.sources.empty())
    document.fail_at("validation.every", "at least 1 where there are validation.sources", "0");
}

void check_batch(const Phase& phase, size_t i, const TomlDocument& document) {
  const std::string multiple = fmt::format("a multiple of seq_len ({})", phase.seq_len);
  if (phase.batch_tokens % phase.seq_len != 0)
    document.fail_at(element("phases", i, "batch_tokens"), multiple, text(phase.batch_tokens));
  if (phase.micro_batch_tokens % phase.seq_len != 0)
    document.fail_at(element("phases", i, "micro_batch_tokens"), multiple,
                     text(phase.micro_batch_tokens));
  const int64_t start = phase.batch_tokens_start;
  if ((start > 0) != (phase.ramp_tokens > 0))
    document.fail_at(element("phases", i, start > 0 ? "ramp_tokens" : "batch_tokens_start"),
                     "batch_tokens_start and ramp_tokens together", "one of them");
  if (start == 0) return;
  if (start % phase.seq_len != 0 || start > phase.batch_tokens)
    document.fail_at(element("phases", i, "batch_tokens_start"),
                     fmt::format("{}, at most batch_tokens ({})", multiple, phase.batch_tokens),
                     text(start));
  if (phase.tokens > 0 && phase.ramp_tokens > phase.tokens)
    document.fail_at(element("phases", i, "ramp_tokens"),
                     fmt::format("at most the phase's tokens ({})", phase.tokens),
                     text(phase.ramp_tokens));
}

void check_mixture(const Recipe& recipe, size_t i, const TomlDocument& document) {
  double sum = 0;
  for (const auto& [name, weight] : recipe.phases[i].mixture) {
    const bool known = std::any_of(recipe.data.begin(), recipe.data.end(),
                                   [&](const DataSource& source) { return source.name == name; });
    if (!known) {
      std::vector<std::string> names;
      for (const DataSource& source : recipe.data) names.push_back(source.name);
      document.fail_at(element("phases", i, "mixture"),
                       fmt::format("names of data sources ({})", fmt::join(names, ", ")),
                       fmt::format("\"{}\"", name));
    }
    sum += weight;
  }
  if (!(sum > 0)) document.fail_at(element("phases", i, "mixture"), "a weight more than 0", "none");
}

void check_phase(const Recipe& recipe, size_t i, const TomlDocument& document) {
  const Phase& phase = recipe.phases[i];
  if ((phase.tokens > 0) == (phase.steps > 0))
    document.fail_at(element("phases", i, "tokens"), "one of tokens and steps",
                     phase.tokens > 0 ? "both" : "neither");
  if (phase.seq_len > recipe.model.max_position_embeddings)
    document.fail_at(element("phases", i, "seq_len"),
                     fmt::format("at most model.max_position_embeddings ({})",
                                 recipe.model.max_position_embeddings),
                     text(phase.seq_len));
  check_batch(phase, i, document);
  check_mixture(recipe, i, document);
}

void check_warmup(const Recipe& recipe, const TomlDocument& document) {
  const OptimizerConfig& optimizer = recipe.optimizer;
  if (optimizer.warmup_steps > 0 && optimizer.warmup_tokens > 0)
    document.fail_at("optimizer.warmup_tokens", "one of warmup_steps and warmup_tokens", "both");
  const StepPlan plan(recipe);
  for (const ScheduleSegment& segment : plan.segments()) {
    if (segment.schedule.warmup_steps <= segment.schedule.total_steps) continue;
    const bool in_tokens = optimizer.warmup_tokens > 0;
    document.fail_at(
        in_tokens ? "optimizer.warmup_tokens" : "optimizer.warmup_steps",
        fmt::format("a warm-up within the {} steps of its phases", segment.schedule.total_steps),
        text(in_tokens ? optimizer.warmup_tokens : optimizer.warmup_steps));
  }
}

}  // namespace

void resolve_recipe(Recipe& recipe, const TomlDocument& document) {
  repeat_sliding_pattern(recipe.model, document);
  for (Phase& phase : recipe.phases) {
    if (phase.rotary_base == 0) phase.rotary_base = recipe.model.rope_theta;
    if (phase.micro_batch_tokens == 0) phase.micro_batch_tokens = phase.batch_tokens;
    if (!phase.mixture.empty()) continue;
    for (const DataSource& source : recipe.data) phase.mixture[source.name] = source.weight;
  }
}

void check_recipe(const Recipe& recipe, const TomlDocument& document) {
  check_config(recipe.model, document.name() + ": model");
  check_names(recipe.data, "data", document);
  check_names(recipe.validation.sources, "validation.sources", document);
  check_names(recipe.phases, "phases", document);
  check_validation(recipe, document);
  for (size_t i = 0; i < recipe.phases.size(); ++i) check_phase(recipe, i, document);
  check_warmup(recipe, document);
}

}  // namespace zaya
