#include "train/plan_text.h"

#include <nlohmann/json.hpp>

#include "optim/optimizer.h"
#include "train/precision.h"

namespace zaya {
namespace {

using Json = nlohmann::ordered_json;

std::string batch_text(const PhasePlan& phase) {
  const auto tokens = [&](const StepRun& run) {
    return short_count(static_cast<double>(run.rows * phase.seq_len));
  };
  if (phase.runs.size() == 1) return tokens(phase.runs.front());
  return tokens(phase.runs.front()) + " to " + tokens(phase.runs.back());
}

// Muon's learning rate at a phase's first and last step.
double learning_rate(const Recipe& recipe, const StepPlan& plan, int64_t step) {
  return recipe.optimizer.muon_learning_rate * plan.at(step).learning_rate_factor;
}

int64_t last_step(const PhasePlan& phase) { return phase.first_step + phase.steps - 1; }

std::string model_text(const Recipe& recipe) {
  const ParameterCounts counts = count_parameters(recipe.model);
  const auto total = static_cast<double>(counts.total);
  const auto text = [&](int64_t count) { return short_count(static_cast<double>(count), total); };
  return fmt::format("model        {} parameters, {} without embeddings, {} active per token\n",
                     text(counts.total), text(counts.without_embeddings), text(counts.active));
}

std::string memory_text(const MemoryPlan& m, DType compute) {
  std::string text = fmt::format("memory       {} in all: weights {}", short_bytes(m.total()),
                                 short_bytes(m.weights));
  if (compute == DType::bf16)
    text += fmt::format(", bf16 copies {}", short_bytes(m.compute_copies));
  return text + fmt::format(", gradients {}, optimizer {}, activations {}\n",
                            short_bytes(m.gradients), short_bytes(m.optimizer),
                            short_bytes(m.activations));
}

// What products run in, and why where the recipe leaves it to the machine.
std::string dtype_text(const Recipe& recipe, DType compute) {
  const std::string name(precision_name(compute));
  return recipe.dtype == Precision::automatic ? fmt::format("{} (auto: {})", name, bf16_support())
                                              : name;
}

std::string data_text(const Recipe& recipe) {
  std::string text = fmt::format("tokenizer    {}\n", recipe.tokenizer.path);
  for (const DataSource& source : recipe.data) {
    text += fmt::format("data         {} {} (weight {}", source.name, source.path, source.weight);
    if (source.holdout_every > 0)
      text += fmt::format(", 1 document in {} held out", source.holdout_every);
    text += ")\n";
  }
  for (const ValidationSource& source : recipe.validation.sources)
    text += fmt::format("validation   {} {}\n", source.name, source.path);
  if (recipe.validates())
    text += fmt::format(
        "validation   every {} steps, {} tokens of each source\n", recipe.validation.every,
        recipe.validation.tokens == 0 ? std::string("all")
                                      : short_count(static_cast<double>(recipe.validation.tokens)));
  return text;
}

std::string phases_text(const Recipe& recipe, const StepPlan& plan) {
  std::string text =
      fmt::format("\n{:<14} {:>8} {:>10} {:>22} {:>8} {:>9} {:>11} {:>22}\n", "phase", "steps",
                  "tokens", "batch (tokens)", "seq_len", "micro", "rotary base", "learning rate");
  for (size_t i = 0; i < recipe.phases.size(); ++i) {
    const Phase& phase = recipe.phases[i];
    const PhasePlan& planned = plan.phases()[i];
    const std::string rates =
        fmt::format("{:.3g} to {:.3g}", learning_rate(recipe, plan, planned.first_step),
                    learning_rate(recipe, plan, last_step(planned)));
    text += fmt::format("{:<14} {:>8} {:>10} {:>22} {:>8} {:>9} {:>11} {:>22}\n", phase.name,
                        planned.steps, short_count(static_cast<double>(planned.tokens())),
                        batch_text(planned), phase.seq_len, phase.micro_batch_tokens,
                        phase.rotary_base, rates);
  }
  for (const Phase& phase : recipe.phases) {
    if (recipe.data.size() < 2) break;
    text += fmt::format("mixture of {}:", phase.name);
    double sum = 0;
    for (const auto& [name, weight] : phase.mixture) sum += weight;
    for (const auto& [name, weight] : phase.mixture)
      text += fmt::format(" {} {:.1f}%", name, 100 * weight / sum);
    text += "\n";
  }
  text += fmt::format("in all {} steps, {} tokens", plan.total_steps(),
                      short_count(static_cast<double>(plan.total_tokens())));
  if (plan.total_steps() < plan.planned_steps())
    text += fmt::format(" (max_steps; the phases have {})", plan.planned_steps());
  return text + "\n";
}

Json phase_json(const Recipe& recipe, const StepPlan& plan, size_t i) {
  const Phase& phase = recipe.phases[i];
  const PhasePlan& planned = plan.phases()[i];
  Json json;
  json["name"] = phase.name;
  json["first_step"] = planned.first_step;
  json["steps"] = planned.steps;
  json["tokens"] = planned.tokens();
  json["batch_tokens_start"] = planned.runs.front().rows * planned.seq_len;
  json["batch_tokens"] = planned.runs.back().rows * planned.seq_len;
  json["seq_len"] = phase.seq_len;
  json["rotary_base"] = phase.rotary_base;
  json["learning_rate_start"] = learning_rate(recipe, plan, planned.first_step);
  json["learning_rate_end"] = learning_rate(recipe, plan, last_step(planned));
  return json;
}

}  // namespace

MemoryPlan memory_plan(const Recipe& recipe, DType compute, int64_t activation_bytes) {
  MemoryPlan plan;
  const ModelConfig& model = recipe.model;
  plan.weights = Parameters::bytes(model, DType::f32, Gradients::none);
  plan.compute_copies = Parameters::bytes(model, compute, Gradients::none) - plan.weights;
  plan.gradients = Parameters::bytes(model, DType::f32, Gradients::allocate) - plan.weights;
  plan.optimizer = Optimizer::bytes(model, recipe.optimizer);
  plan.activations = activation_bytes;
  return plan;
}

std::string plan_text(const Recipe& recipe, const StepPlan& plan, const MemoryPlan& memory,
                      DType compute) {
  return fmt::format("recipe       {}, seed {}, {}\n", recipe.name, recipe.seed,
                     dtype_text(recipe, compute)) +
         model_text(recipe) + memory_text(memory, compute) + data_text(recipe) +
         phases_text(recipe, plan);
}

std::string plan_json(const Recipe& recipe, const StepPlan& plan, const MemoryPlan& memory,
                      DType compute) {
  const ParameterCounts counts = count_parameters(recipe.model);
  Json json;
  json["name"] = recipe.name;
  json["dtype"] = precision_name(compute);
  json["parameters"] = {{"total", counts.total},
                        {"without_embeddings", counts.without_embeddings},
                        {"active", counts.active}};
  json["memory_bytes"] = {
      {"weights", memory.weights},         {"compute_copies", memory.compute_copies},
      {"gradients", memory.gradients},     {"optimizer", memory.optimizer},
      {"activations", memory.activations}, {"total", memory.total()}};
  json["steps"] = plan.total_steps();
  json["tokens"] = plan.total_tokens();
  json["phases"] = Json::array();
  for (size_t i = 0; i < recipe.phases.size(); ++i)
    json["phases"].push_back(phase_json(recipe, plan, i));
  return json.dump();
}

std::string short_count(double count) { return short_count(count, count); }

std::string short_count(double count, double like) {
  if (like < 1e6) return fmt::format("{}", count);
  if (like < 1e9) return fmt::format("{:.3f} M", count / 1e6);
  if (like < 1e12) return fmt::format("{:.3f} B", count / 1e9);
  return fmt::format("{:.3f} T", count / 1e12);
}

std::string short_bytes(int64_t bytes) {
  double value = static_cast<double>(bytes);
  for (const char* unit : {"B", "KiB", "MiB", "GiB"}) {
    if (value < 1024) return fmt::format("{:.{}f} {}", value, *unit == 'B' ? 0 : 1, unit);
    value /= 1024;
  }
  return fmt::format("{:.1f} TiB", value);
}

}  // namespace zaya
