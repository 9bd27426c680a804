#include "checkpoint/convert.h"

#include <fmt/format.h>

#include "checkpoint/locate.h"
#include "cmd/commands.h"
#include "cmd/progress.h"
#include "core/json.h"

namespace zaya {
namespace {

struct Options {
  std::string in, out, to;
  ConvertOptions convert;
  bool force = false;
  bool json = false;
};

const std::map<std::string, StoredForm> kForms{{"hf", {Layout::current, 0}},
                                               {"original", {Layout::original, 0}},
                                               {"int8", {Layout::current, 8}},
                                               {"int4", {Layout::current, 4}}};

std::string size_text(uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

void print_summary(const ConvertSummary& summary, const Options& options) {
  if (options.json) {
    fmt::print("{}\n", json_text({{"out", options.out},
                                  {"from", text_of(summary.from)},
                                  {"to", text_of(summary.to)},
                                  {"parameters", summary.parameters},
                                  {"bytes_before", summary.bytes_before},
                                  {"bytes", summary.bytes},
                                  {"files", summary.files},
                                  {"copied", summary.copied},
                                  {"warnings", summary.warnings}}));
    return;
  }
  fmt::print("{}: {}, {} in {} file{} (from {}, {}), {} parameters\n", options.out,
             text_of(summary.to), size_text(summary.bytes), summary.files.size(),
             summary.files.size() == 1 ? "" : "s", text_of(summary.from),
             size_text(summary.bytes_before), summary.parameters);
  if (!summary.copied.empty()) fmt::print("copied along: {}\n", fmt::join(summary.copied, ", "));
}

void run(Options& options) {
  options.convert.to = kForms.at(options.to);
  options.convert.existing = options.force ? Existing::replace : Existing::keep;
  Context ctx;
  ConvertSummary summary;
  {
    ProgressBar bar;
    summary = convert_model(
        ctx, locate_model(options.in), options.out, options.convert,
        [&](uint64_t done, uint64_t total) {
          bar.update("converting", static_cast<double>(done) / static_cast<double>(total),
                     fmt::format("{} of {}", size_text(done), size_text(total)));
        });
  }
  for (const std::string& warning : summary.warnings)
    fmt::print(stderr, "zaya: warning: {}\n", warning);
  print_summary(summary, options);
}

}  // namespace

void add_convert_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "convert",
      "Write a model in another form: the other layout, exactly, or its matrices as integers of 8 "
      "or 4 bits.");
  command->add_option("IN", options->in, "model folder, checkpoint or run")->required();
  command->add_option("OUT", options->out, "folder to write; appears when it is whole")->required();
  command
      ->add_option(
          "--to", options->to,
          "hf: the current layout; original: the alternating layers of the first releases; "
          "int8, int4: the current layout with integer weights")
      ->check(CLI::IsMember({"hf", "original", "int8", "int4"}))
      ->required();
  command
      ->add_option("--shard-size", options->convert.shard_bytes,
                   "bytes of tensors in a file, above which there are several with an index; also "
                   "as 500MB, 4GB")
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--force", options->force,
                    "replace OUT and everything in it, when the new one is whole");
  command->add_flag("--json", options->json, "print the summary as one JSON object");
  command->footer("Example: zaya convert models/zaya1-8b models/zaya1-8b-int8 --to int8");
  command->callback([options] { run(*options); });
}

}  // namespace zaya
