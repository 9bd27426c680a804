#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "cmd/commands.h"
#include "cmd/progress.h"
#include "cmd/text_model.h"
#include "cmd/watched.h"
#include "core/file.h"
#include "core/json.h"
#include "eval/perplexity.h"
#include "plan/memory_use.h"

namespace zaya {
namespace {

constexpr uint64_t kMostText = uint64_t{1} << 30;

struct EvalOptions {
  TextModelFlags model;
  std::string text;
  int64_t context = 512;
  bool one_by_one = false;
  bool json = false;
};

void print(const EvalOptions& options, const TextScore& score, double seconds) {
  const double tokens_per_second = static_cast<double>(score.tokens) / seconds;
  if (options.json) {
    fmt::print("{}\n", json_text({{"loss", score.loss()},
                                  {"perplexity", score.perplexity()},
                                  {"bits_per_byte", score.bits_per_byte()},
                                  {"tokens", score.tokens},
                                  {"bytes", score.bytes},
                                  {"context", options.context},
                                  {"one_by_one", options.one_by_one},
                                  {"tokens_per_second", tokens_per_second},
                                  {"peak_memory_bytes", peak_memory_bytes()}}));
    return;
  }
  fmt::print("perplexity   {:.4f}, a loss of {:.4f} a token\n", score.perplexity(), score.loss());
  fmt::print("text         {} tokens, {} bytes: {:.4f} bits/byte\n", score.tokens, score.bytes,
             score.bits_per_byte());
  fmt::print("read         {} at a time, {:.0f} tokens/s, {} of memory\n",
             options.one_by_one ? 1 : options.context, tokens_per_second,
             bytes_text(static_cast<double>(peak_memory_bytes())));
}

void run(const EvalOptions& options) {
  const TextModel text = open_text_model(options.model);
  const std::string bytes = read_file(options.text, kMostText);
  Context ctx;
  Zaya model = load_weights(ctx, options.model, text);
  if (options.context > model.config().max_position_embeddings)
    fail("--context: wanted 2 to the model's {}, got {}", model.config().max_position_embeddings,
         options.context);
  const auto start = std::chrono::steady_clock::now();
  const TextScore score = watched([&](const BenchProgress& progress) {
    return score_text(ctx, model, *text.tokenizer, bytes, options.context,
                      options.one_by_one ? ReadAs::generated : ReadAs::prompt,
                      [&](double done) { progress("reading", done); });
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  print(options, score, seconds.count());
}

}  // namespace

void add_eval_command(CLI::App& app) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command =
      app.add_subcommand("eval", "How well a model foretells a text: perplexity, bits per byte.");
  add_model_flags(*command, options->model);
  command->add_option("--text", options->text, "text file")->required();
  command
      ->add_option("--context", options->context, "tokens of the windows that the text is cut into")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 24))
      ->capture_default_str();
  command->add_flag("--one-by-one", options->one_by_one,
                    "through the caches, as generated tokens are computed; slower");
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer("Example: zaya eval --model runs/quickstart --text data/quickstart/heldout.txt");
  command->callback([options] { run(*options); });
}

}  // namespace zaya
