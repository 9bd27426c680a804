#include "infer/generate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "checkpoint/hf_model.h"
#include "checkpoint/locate.h"
#include "cmd/commands.h"
#include "core/json.h"

namespace zaya {
namespace {

struct Options {
  std::string model;
  std::string tokenizer;
  std::string prompt;
  std::string dtype = "f32";
  GenerateOptions generate;
  bool json = false;
};

volatile std::sig_atomic_t interrupted = 0;
void on_interrupt(int) { interrupted = 1; }

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

void print_json(const Generation& result, const Options& options) {
  fmt::print(
      "{}\n",
      json_text({{"prompt", options.prompt},
                 {"text", result.text},
                 {"prompt_tokens", result.prompt_tokens},
                 {"new_tokens", result.new_tokens},
                 {"ended", result.ended},
                 {"prompt_tokens_per_second", rate(result.prompt_tokens, result.prompt_seconds)},
                 {"decode_tokens_per_second", rate(result.new_tokens, result.decode_seconds)}}));
}

void print_figures(const Generation& result) {
  if (!isatty(STDERR_FILENO)) return;
  fmt::print(stderr, "[{} prompt tokens at {:.0f}/s, {} new tokens at {:.0f}/s{}]\n",
             result.prompt_tokens, rate(result.prompt_tokens, result.prompt_seconds),
             result.new_tokens, rate(result.new_tokens, result.decode_seconds),
             result.ended ? "" : ", cut at --max-tokens");
}

void run(const Options& options) {
  check_sampling(options.generate.sampling);
  Context ctx;
  const fs::path folder = locate_model(options.model);
  const auto tokenizer =
      open_tokenizer(options.tokenizer.empty() ? folder.string() : options.tokenizer);
  Zaya model =
      load_model(ctx, folder, options.dtype == "bf16" ? DType::bf16 : DType::f32, Gradients::none);
  std::signal(SIGINT, on_interrupt);  // stops the text, not the program
  const bool stream = !options.json;
  const auto show = [&](std::string_view text) {
    if (stream) {
      fmt::print("{}", text);
      std::fflush(stdout);
    }
    return interrupted == 0;
  };
  show(options.prompt);
  const Generation result =
      generate(ctx, model, *tokenizer, options.prompt, options.generate, show);
  if (options.json) return print_json(result, options);
  fmt::print("\n");
  print_figures(result);
}

void add_sampling_options(CLI::App& command, SamplingOptions& sampling) {
  command.add_option("--temperature", sampling.temperature, "0: always the likeliest token")
      ->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "keep the k likeliest tokens; 0: all")
      ->capture_default_str();
  command.add_option("--top-p", sampling.top_p, "keep the likeliest tokens up to this probability")
      ->capture_default_str();
  command.add_option("--seed", sampling.seed, "the same seed gives the same text")
      ->capture_default_str();
}

}  // namespace

void add_generate_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("generate", "Continue a prompt with a model, printing as it writes.");
  command->add_option("--model", options->model, "model folder, checkpoint or run")->required();
  command->add_option("--prompt", options->prompt, "text to continue (may be empty)")->required();
  command->add_option("--tokenizer", options->tokenizer,
                      "tokenizer, where the model's folder holds none");
  command->add_option("--max-tokens", options->generate.max_tokens, "tokens to write at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
      ->capture_default_str();
  command->add_option("--dtype", options->dtype, "compute format")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  add_sampling_options(*command, options->generate.sampling);
  command->add_flag("--json", options->json, "print one JSON object when the text is complete");
  command->footer(
      "Example: zaya generate --model runs/quickstart --prompt \"hacker: n.\" --seed 7");
  command->callback([options] { run(*options); });
}

}  // namespace zaya
