#include "infer/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "cmd/commands.h"
#include "cmd/interrupt.h"
#include "cmd/text_model.h"
#include "core/file.h"
#include "core/json.h"
#include "plan/memory_use.h"

namespace zaya {
namespace {

constexpr int64_t kDefaultMaxTokens = 256;

struct Options {
  TextModelFlags model;
  std::vector<std::string> prompts;
  std::string prompts_file;
  int64_t batch = 16;
  SamplingFlags sampling;
  bool json = false;
};

// The lines of a file, "-" being standard input.
std::vector<std::string> lines_of(const std::string& file) {
  const std::string text = read_file(file == "-" ? "/dev/stdin" : file);
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    begin = end + 1;
  }
  return lines;
}

std::vector<std::string> all_prompts(const Options& options) {
  if (!options.prompts.empty()) return options.prompts;
  if (options.prompts_file.empty()) throw CLI::RequiredError("--prompt or --prompts");
  std::vector<std::string> prompts = lines_of(options.prompts_file);
  if (prompts.empty()) fail("{}: wanted a prompt a line, got an empty file", options.prompts_file);
  return prompts;
}

std::vector<std::vector<int32_t>> encode(const std::vector<std::string>& prompts,
                                         const TextModel& model) {
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& prompt : prompts) {
    ids.push_back(model.tokenizer->encode_document(prompt));
    if (ids.back().empty() && model.special.bos) ids.back() = {*model.special.bos};
  }
  return ids;
}

void print_json(const std::string& prompt, const Generation& result) {
  fmt::print(
      "{}\n",
      json_text({{"prompt", prompt},
                 {"text", result.text},
                 {"prompt_tokens", result.prompt_tokens},
                 {"new_tokens", result.new_tokens},
                 {"ended", result.stopped == Stopped::eos},
                 {"stopped", name_of(result.stopped == Stopped::not_yet ? Stopped::interrupted
                                                                        : result.stopped)},
                 {"prompt_tokens_per_second", rate(result.prompt_tokens, result.prompt_seconds)},
                 {"decode_tokens_per_second", rate(result.decode_steps, result.decode_seconds)},
                 {"peak_memory_bytes", peak_memory_bytes()}}));
}

void show(std::string_view text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

std::string note_of(const std::vector<Generation>& results) {
  if (results.size() > 1) return fmt::format("{} prompts", results.size());
  const Stopped stopped = results[0].stopped;
  return stopped == Stopped::length ? "cut at --max-tokens" : "";
}

// Prompts and texts in their order, whichever is finished first.
class Printer {
 public:
  Printer(const std::vector<std::string>& prompts, bool json)
      : prompts_(prompts), json_(json), streams_(!json && prompts.size() == 1) {
    if (streams_) show(prompts[0]);
  }
  void text(std::string_view text) const {
    if (streams_) show(text);
  }
  void done(size_t index, const Generation& result) {
    done_[index] = result;
    for (; done_.contains(printed_); ++printed_) print(printed_, done_[printed_]);
  }
  // Those that an interruption left out, and the end.
  void finish(const std::vector<Generation>& results) {
    for (; printed_ < results.size(); ++printed_) print(printed_, results[printed_]);
  }

 private:
  void print(size_t index, const Generation& result) const {
    if (json_) {
      print_json(prompts_[index], result);
    } else if (streams_) {
      show("\n");
    } else {
      fmt::print("{}--- {} of {}\n{}{}\n", index > 0 ? "\n" : "", index + 1, prompts_.size(),
                 prompts_[index], result.text);
    }
    std::fflush(stdout);
  }

  const std::vector<std::string>& prompts_;
  bool json_, streams_;
  size_t printed_ = 0;
  std::map<size_t, Generation> done_;
};

void warn_of_context(const std::vector<Generation>& results, int64_t longest) {
  const auto full = std::count_if(results.begin(), results.end(), [](const Generation& result) {
    return result.stopped == Stopped::context;
  });
  if (full > 0)
    fmt::print(stderr, "zaya: stopped {} at the model's {} tokens (max_position_embeddings)\n",
               results.size() == 1 ? "the text" : fmt::format("{} texts", full), longest);
}

void run(const Options& options) {
  check_flags(options.sampling);
  const std::vector<std::string> prompts = all_prompts(options);
  const TextModel text = open_text_model(options.model);
  GenerateOptions generate_with = generate_options(options.sampling, text.generation, text.special,
                                                   *text.tokenizer, kDefaultMaxTokens);
  generate_with.batch = options.batch;
  Context ctx;
  Zaya model = load_weights(ctx, options.model, text);
  note_interrupts();  // Ctrl-C stops the text, not the program
  Printer printer(prompts, options.json);
  GenerateHooks hooks;
  hooks.interrupted = interrupted;
  hooks.on_text = [&](size_t, std::string_view piece) { printer.text(piece); };
  hooks.on_done = [&](size_t index, const Generation& done) { printer.done(index, done); };
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Generation> results =
      generate(ctx, model, *text.tokenizer, encode(prompts, text), generate_with, hooks);
  printer.finish(results);
  warn_of_context(results, model.config().max_position_embeddings);
  TextFigures figures;
  for (const Generation& result : results) figures.add(result);
  // Side by side: all of the time in which no prompt was read.
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;
  figures.decode_seconds = whole.count() - figures.prompt_seconds;
  print_figures(figures, note_of(results));
}

}  // namespace

void add_generate_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("generate", "Continue prompts with a model, printing as it writes.");
  add_model_flags(*command, options->model);
  CLI::Option* const prompts = command->add_option(
      "--prompts", options->prompts_file, "file of prompts, one a line; -: from standard input");
  prompts->type_name("FILE");
  command
      ->add_option("--prompt", options->prompts,
                   "text to continue (may be empty); may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->excludes(prompts);
  command->add_option("--batch", options->batch, "prompts to continue side by side, at most")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}))
      ->capture_default_str();
  add_sampling_flags(*command, options->sampling, kDefaultMaxTokens);
  command->add_flag("--json", options->json,
                    "print a JSON object a prompt, when its text is complete");
  command->footer(
      "Example: zaya generate --model runs/quickstart --prompt \"hacker: n.\" --seed 7");
  command->callback([options] { run(*options); });
}

}  // namespace zaya
