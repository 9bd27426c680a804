#include <fmt/format.h>

#include <csignal>

#include "backend/cpu/threads.h"
#include "cmd/commands.h"
#include "cmd/progress_line.h"
#include "core/error.h"
#include "plan/memory_use.h"
#include "train/plan_text.h"
#include "train/precision.h"
#include "train/trainer.h"

namespace zaya {
namespace {

struct Options {
  std::string recipe;
  std::vector<std::string> set;
  std::string out;
  std::string resume = "auto";
  bool dry_run = false;
  bool json = false;
};

volatile std::sig_atomic_t stop_signal = 0;
void on_stop_signal(int signal) {
  stop_signal = signal;
  std::signal(signal, SIG_DFL);  // a second one ends the program at once
}

void catch_stop_signals() {
  std::signal(SIGINT, on_stop_signal);
  std::signal(SIGTERM, on_stop_signal);
  // The terminal or the ssh connection went away. nohup has it ignored, and so it stays.
  if (std::signal(SIGHUP, on_stop_signal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  // Ctrl-C under "| tee log" ends tee first; the checkpoint must still be written.
  std::signal(SIGPIPE, SIG_IGN);
}

// Shows a run to a person: the progress line, validations, and what they should know.
class Watcher : public TrainObserver {
 public:
  Watcher(const StepPlan& plan, double seconds_between)
      : line_(stdout, plan.total_steps(), plan.total_tokens(), seconds_between) {}

  void step(const StepMetrics& metrics) override { line_.show(metrics); }
  void validation(const ValidationMetrics& metrics) override {
    line_.message(fmt::format("validation after step {}: loss {:.4f}, {:.4f} bits/byte",
                              metrics.step, metrics.loss, metrics.bits_per_byte));
  }
  void message(const std::string& text) override { line_.message(text); }
  bool stop_requested() override { return stop_signal != 0; }

 private:
  ProgressLine line_;
};

void report(const TrainResult& result, const StepPlan& plan, const std::string& out) {
  if (result.complete)
    fmt::print("done: {} steps, checkpoint {}\n", result.steps, result.checkpoint.string());
  else
    fmt::print("stopped after step {} of {}; the same command goes on from there\n", result.steps,
               plan.total_steps());
  if (result.skipped_steps > 0)
    fmt::print("{} steps were skipped: see {}/metrics.jsonl\n", result.skipped_steps, out);
}

void run(const Options& options) {
  Recipe recipe = load_recipe(options.recipe, options.set);
  const StepPlan plan(recipe);
  const DType compute = resolve_precision(recipe.dtype);
  const MemoryPlan memory = memory_plan(recipe, compute, recipe_activation_bytes(recipe, compute));
  if (options.json)
    fmt::print("{}\n", plan_json(recipe, plan, memory, compute));
  else
    fmt::print("{}", plan_text(recipe, plan, memory, compute));
  if (options.dry_run) return;
  // What auto came to here is part of the run: another machine goes on with it or refuses.
  recipe.dtype = precision_of(compute);
  require_memory("the run (a smaller model, sequence or phases.micro_batch_tokens would take less)",
                 memory.total());

  if (recipe.threads > 0) set_thread_count(recipe.threads);
  const std::string out = options.out.empty() ? "runs/" + recipe.name : options.out;
  catch_stop_signals();
  Watcher watcher(plan, recipe.metrics.progress_seconds);
  report(train(recipe, {out, options.resume}, watcher), plan, out);
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "train", "Train a model from a recipe, or go on with a run that was stopped.");
  command->add_option("RECIPE", options->recipe, "a TOML file; docs/recipe.md lists every key")
      ->required();
  command
      ->add_option("--set", options->set,
                   "path=value over the recipe's, e.g. optimizer.clip_norm=2; repeatable")
      ->expected(1)
      ->take_all();
  command->add_option("--out", options->out, "the run's folder (default: runs/NAME)");
  command
      ->add_option("--resume", options->resume,
                   "auto (newest whole checkpoint of --out), never, or a checkpoint")
      ->capture_default_str();
  command->add_flag("--dry-run", options->dry_run, "print the plan and stop");
  command->add_flag("--json", options->json, "print the plan as one JSON object");
  command->footer(
      "Ctrl-C (or SIGTERM) finishes the step, saves and exits; the same command goes on.\n"
      "Example: zaya train recipes/quickstart.toml --set max_steps=100 --out runs/short");
  command->callback([options] { run(*options); });
}

}  // namespace zaya
