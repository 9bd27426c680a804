#include <fmt/format.h>

#include <memory>

#include "backend/cpu/instruction_set.h"
#include "backend/cpu/threads.h"
#include "cmd/bench_decode.h"
#include "cmd/bench_report.h"
#include "cmd/commands.h"
#include "cmd/watched.h"
#include "cmd/yardstick.h"
#include "core/error.h"
#include "plan/memory_use.h"
#include "train/plan_text.h"
#include "train/precision.h"

namespace zaya {
namespace {

struct Options {
  std::string recipe;  // empty: the one built in
  std::vector<std::string> set;
  std::string dtype;  // empty: the recipe's
  bool threads_given = false;
  int64_t seq_len = 0;  // 0: the recipe's
  int repeats = 5;
  bool json = false;
};

Recipe recipe_of(const Options& options) {
  if (options.recipe.empty()) return parse_recipe(kYardstick, kYardstickName, options.set);
  return load_recipe(options.recipe, options.set);
}

// What products run in, and why.
std::string dtype_text(const Options& options, Precision asked, DType compute) {
  std::string text = fmt::format("{}: ", precision_name(compute));
  if (asked == Precision::automatic) return text + fmt::format("auto, and {}", bf16_support());
  text += options.dtype.empty() ? "the recipe says so" : "--dtype says so";
  if (multiplied_format(compute) != compute) text += fmt::format("; widened, {}", bf16_support());
  return text;
}

// The first phase's batch, or its micro-batch where that is smaller.
BenchSetting setting_of(const Options& options) {
  BenchSetting setting;
  setting.recipe = recipe_of(options);
  const Recipe& recipe = setting.recipe;
  if (!options.threads_given && recipe.threads > 0) set_thread_count(recipe.threads);
  setting.recipe_text = options.recipe.empty() ? recipe.name + " (built in)" : options.recipe;
  const Precision precision = fields::enum_value<Precision>(options.dtype).value_or(recipe.dtype);
  StepBenchOptions& step = setting.step;
  step.compute = resolve_precision(precision);
  setting.dtype_text = dtype_text(options, precision, step.compute);
  const Phase& phase = recipe.phases.front();
  step.tokens = std::min(phase.micro_batch_tokens, phase.batch_tokens);
  step.seq_len = options.seq_len > 0 ? options.seq_len : phase.seq_len;
  step.repeats = options.repeats;
  if (step.tokens % step.seq_len != 0)
    throw CLI::ValidationError("--seq-len", fmt::format("wanted a divisor of the {} tokens of a "
                                                        "step, got {}",
                                                        step.tokens, step.seq_len));
  return setting;
}

void print(const Options& options, const std::string& text, const Json& json) {
  fmt::print("{}", options.json ? json_text(json) + "\n" : text);
}

void run_gemm(const Options& options) {
  const BenchSetting setting = setting_of(options);
  const GemmSpeed speed = watched([&](const BenchProgress& progress) {
    return measure_gemm(setting.recipe.model, setting.step.tokens, setting.step.compute, progress);
  });
  print(options, gemm_text(setting, speed), gemm_json(setting, speed));
}

void run_step(const Options& options) {
  const BenchSetting setting = setting_of(options);
  require_memory("a step of " + setting.recipe_text,
                 predicted_step_bytes(setting.recipe, setting.step));
  const StepSpeed speed = watched([&](const BenchProgress& progress) {
    return measure_step(setting.recipe, setting.step, progress);
  });
  print(options, step_text(setting, speed), step_json(setting, speed));
}

void add_common_options(CLI::App& app, CLI::App& command, Options& options) {
  command
      .add_option("--recipe", options.recipe,
                  fmt::format("the model and the batch (default: {}, built in)", kYardstickName))
      ->check([](const std::string& path) {
        return path.empty() ? std::string("wanted a TOML file, got \"\"") : std::string();
      });
  command
      .add_option("--set", options.set,
                  "path=value over the recipe's, e.g. model.hidden_size=256; repeatable")
      ->expected(1)
      ->take_all();
  command.add_option("--dtype", options.dtype, "auto, f32 or bf16 (default: the recipe's)")
      ->check(CLI::IsMember(enum_names(Precision{})));
  command
      .add_option_function<int>(
          "--threads",
          [&options](int count) {
            set_thread_count(count);
            options.threads_given = true;
          },
          "threads to compute with (default: the recipe's, or every core)")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--json", options.json, "print one JSON object");
  // zaya --threads 1 bench ... means the same.
  command.preparse_callback([&app, &options](size_t) {
    options.threads_given = options.threads_given || app.count("--threads") > 0;
  });
}

void add_gemm(CLI::App& app, CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand(
      "gemm", "The machine's peak, and what the products of a model reach of it.");
  add_common_options(app, *command, *options);
  command->footer("Takes some seconds.\nExample: zaya bench gemm --dtype f32 --threads 1");
  command->callback([options] { run_gemm(*options); });
}

void add_step(CLI::App& app, CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand(
      "step", "A training step on random tokens: where its time goes, and its memory.");
  add_common_options(app, *command, *options);
  command
      ->add_option("--seq-len", options->seq_len,
                   "tokens of a row; the batch stays as large (default: the recipe's)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  command->add_option("--repeats", options->repeats, "steps to take the median of")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->footer(
      "Reads no data and writes nothing. Of a recipe with several phases, the first.\n"
      "Example: zaya bench step --seq-len 4096 --dtype bf16");
  command->callback([options] { run_step(*options); });
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "bench", "Measure speed and memory on this machine, beside what it could do at best.");
  command->require_subcommand(1);
  command->footer("Example: zaya bench step");
  add_gemm(app, *command);
  add_step(app, *command);
  add_decode_bench(*command);
}

}  // namespace zaya
