#include "data/pack.h"

#include <fmt/format.h>

#include <memory>

#include "cmd/commands.h"
#include "cmd/progress.h"
#include "core/json.h"

namespace zaya {
namespace {

struct Options {
  std::string tokenizer;
  std::vector<std::string> inputs;
  std::string out;
  PackOptions pack;
  bool no_bos = false;
  bool no_eos = false;
  bool json = false;
};

double bytes_per_token(const PackSummary& summary) {
  return static_cast<double>(summary.bytes) / static_cast<double>(summary.tokens);
}

void print_summary(const PackSummary& summary, const Options& options) {
  if (options.json) {
    fmt::print("{}\n", json_text({{"prefix", options.out},
                                  {"documents", summary.documents},
                                  {"tokens", summary.tokens},
                                  {"bytes", summary.bytes},
                                  {"bytes_per_token", bytes_per_token(summary)}}));
    return;
  }
  fmt::print("{}.bin, {}.idx: {} documents, {} tokens, {} bytes of text, {:.2f} bytes per token\n",
             options.out, options.out, summary.documents, summary.tokens, summary.bytes,
             bytes_per_token(summary));
}

void run(Options& options) {
  options.pack.bos = !options.no_bos;
  options.pack.eos = !options.no_eos;
  const auto tokenizer = open_tokenizer(options.tokenizer);
  ProgressBar bar;
  const auto show = [&](const PackProgress& progress) {
    bar.update("packing",
               static_cast<double>(progress.bytes_read) /
                   static_cast<double>(std::max<int64_t>(progress.total_bytes, 1)),
               fmt::format("{} documents, {:.1f} M tokens", progress.so_far.documents,
                           static_cast<double>(progress.so_far.tokens) / 1e6));
  };
  print_summary(pack(options.inputs, *tokenizer, options.out, options.pack, show), options);
}

}  // namespace

void add_pack_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "pack", "Turn text into the tokens that train reads (Megatron .bin/.idx).");
  command
      ->add_option("--tokenizer", options->tokenizer,
                   "a SentencePiece .model file, a folder that holds one, or the word byte")
      ->required();
  command->add_option("--input", options->inputs, "files: .txt or .jsonl, also with .gz or .zst")
      ->required();
  command->add_option("--out", options->out, "writes PREFIX.bin and PREFIX.idx")
      ->type_name("PREFIX")
      ->required();
  command
      ->add_option("--separator", options->pack.text.separator,
                   "text files: the line that ends a document (default: a file is one document)")
      ->type_name("LINE");
  command->add_option("--field", options->pack.text.field, "JSON lines: the member with the text")
      ->capture_default_str();
  command->add_flag("--no-bos", options->no_bos, "no token before each document");
  command->add_flag("--no-eos", options->no_eos, "no token after each document");
  command->add_flag("--json", options->json, "print the summary as one JSON object");
  command->footer(
      "Example: zaya pack --tokenizer tok.model --input data/quickstart/train.txt "
      "--separator % --out runs/train");
  command->callback([options] { run(*options); });
}

}  // namespace zaya
