#include "data/tokenizer.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "cmd/commands.h"
#include "cmd/progress.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "data/train_tokenizer.h"

namespace zaya {
namespace {

struct Options {
  std::string tokenizer;
  std::vector<std::string> inputs;
  std::string out;
  int32_t vocab_size = 0;
  TrainTokenizerOptions train;
  bool json = false;
  bool document = false;
  bool special = false;
};

void run_train(const Options& options) {
  TrainTokenizerSummary summary;
  {
    ProgressBar bar;
    summary = train_tokenizer(
        options.inputs, options.vocab_size, options.out, options.train,
        [&](std::string_view stage, double fraction) { bar.update(std::string(stage), fraction); });
  }
  if (options.json) {
    fmt::print("{}\n", json_text({{"model", options.out},
                                  {"vocab_size", summary.vocab_size},
                                  {"documents", summary.documents},
                                  {"bytes", summary.bytes}}));
    return;
  }
  fmt::print("{}: {} tokens, learnt from {} documents, {}\n", options.out, summary.vocab_size,
             summary.documents, bytes_text(static_cast<double>(summary.bytes)));
}

void run_encode(const Options& options) {
  const auto tokenizer = open_tokenizer(options.tokenizer);
  const std::string text = read_file("/dev/stdin");
  const std::vector<int32_t> ids =
      options.document ? tokenizer->encode_document(text) : tokenizer->encode(text);
  if (options.json) {
    fmt::print("{}\n", json_text({{"ids", ids}}));
  } else {
    fmt::print("{}\n", fmt::join(ids, " "));
  }
}

std::vector<int32_t> ids_in_json(const std::string& text) {
  const Json value = parse_json(text, "standard input");
  std::vector<int32_t> ids;
  for (const int64_t id : JsonObject(value, "standard input").integers("ids", 0, INT32_MAX)) {
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

// Numbers with white space between them.
std::vector<int32_t> ids_in_words(const std::string& text) {
  std::vector<int32_t> ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  while (true) {
    while (at < end && is_space(*at)) ++at;
    if (at == end) return ids;
    const char* const word = at;
    while (at < end && !is_space(*at)) ++at;
    int32_t id = 0;
    const auto result = std::from_chars(word, at, id);
    if (result.ec != std::errc() || result.ptr != at) {
      fail("standard input: wanted token ids, got {}", json_quoted({word, at}));
    }
    ids.push_back(id);
  }
}

void run_decode(const Options& options) {
  const auto tokenizer = open_tokenizer(options.tokenizer);
  const std::string input = read_file("/dev/stdin");
  const bool is_json =
      input.find_first_not_of(" \t\r\n") == input.find('{') && input.find('{') != std::string::npos;
  const std::string text =
      tokenizer->decode(is_json ? ids_in_json(input) : ids_in_words(input),
                        options.special ? SpecialTokens::shown : SpecialTokens::left_out);
  if (options.json) {
    fmt::print("{}\n", json_text({{"text", text}}));
  } else {
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
}

void add_train(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand(
      "train", "Learn a SentencePiece BPE tokenizer with byte fallback: any bytes survive it.");
  command->add_option("--input", options->inputs, "files: .txt or .jsonl, also with .gz or .zst")
      ->required();
  command
      ->add_option("--vocab", options->vocab_size, "tokens, 3 special ones and 256 bytes included")
      ->required();
  command->add_option("--out", options->out, "the .model file to write")->required();
  command
      ->add_option("--separator", options->train.text.separator,
                   "text files: the line that ends a document (default: a file is one document)")
      ->type_name("LINE");
  command->add_option("--field", options->train.text.field, "JSON lines: the member with the text")
      ->capture_default_str();
  command
      ->add_option("--max-bytes", options->train.max_bytes,
                   "text to learn from; of more, an even sample of documents is taken")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print the summary as one JSON object");
  command->footer(
      "Example: zaya tokenizer train --input data/quickstart/train.txt --separator % "
      "--vocab 2048 --out tok.model");
  command->callback([options] { run_train(*options); });
}

struct Flag {
  const char* name;
  const char* help;
  bool Options::*member;
};

void add_conversion(CLI::App& parent, const char* name, const char* help, const char* json_help,
                    const char* footer, const Flag& flag, void (*run)(const Options&)) {
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand(name, help);
  command
      ->add_option("--tokenizer", options->tokenizer,
                   "a tokenizer.json, a SentencePiece .model file, a folder that holds one, or the "
                   "word byte")
      ->required();
  command->add_flag(flag.name, (*options).*flag.member, flag.help);
  command->add_flag("--json", options->json, json_help);
  command->footer(footer);
  command->callback([options, run] { run(*options); });
}

}  // namespace

void add_tokenizer_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("tokenizer", "Learn a tokenizer, or turn text into token ids and back.");
  command->require_subcommand(1);
  command->footer("Example: echo hello | zaya tokenizer encode --tokenizer byte");
  add_train(*command);
  const Flag document = {"--document", "add what the tokenizer puts around a document, such as bos",
                         &Options::document};
  const Flag special = {"--special", "show special tokens, such as <bos> of a tokenizer.json",
                        &Options::special};
  add_conversion(*command, "encode", "Text on standard input to token ids, without bos and eos.",
                 "print an object with the member ids",
                 "Example: printf 'See {hacker}.' | zaya tokenizer encode --tokenizer tok.model",
                 document, run_encode);
  add_conversion(
      *command, "decode", "Token ids on standard input (numbers, or an object with ids) to text.",
      "print an object with the member text",
      "Example: echo 104 105 | zaya tokenizer decode --tokenizer byte", special, run_decode);
}

}  // namespace zaya
