#include <fmt/format.h>

#include "checkpoint/checkpoint_dir.h"
#include "cmd/commands.h"
#include "cmd/inspect_report.h"
#include "core/error.h"

namespace zaya {
namespace {

struct InspectOptions {
  std::string path;
  bool quick = false;
  bool json = false;
};

InspectReport inspect_folder(const fs::path& folder, Verify verify) {
  if (fs::exists(folder / "manifest.json")) return inspect_checkpoint(folder, verify);
  if (fs::exists(folder / "config.json")) return inspect_model(folder);
  if (!list_checkpoints(folder).empty()) return inspect_run(folder, verify);
  if (fs::exists(folder / "model.safetensors") ||
      fs::exists(folder / "model.safetensors.index.json"))
    return inspect_tensors(folder);
  for (const char* name : {"tokenizer.json", "tokenizer.model", "tokenizer.byte"}) {
    if (fs::exists(folder / name)) return inspect_tokenizer(folder.string());
  }
  fail(
      "{}: wanted a checkpoint (manifest.json), a model (config.json), a run (step-... folders), "
      "weights (model.safetensors) or a tokenizer (tokenizer.json), got none of them",
      folder.string());
}

InspectReport inspect(const std::string& what, Verify verify) {
  const fs::path path(what);
  if (what == "byte") return inspect_tokenizer(what);
  if (fs::is_directory(path)) return inspect_folder(path, verify);
  const std::string extension = path.extension().string();
  if (extension == ".idx" || extension == ".bin" || fs::exists(what + ".idx"))
    return inspect_token_store(what);
  if (!fs::exists(path)) fail("{}: no such file or folder", what);
  if (extension == ".safetensors") return inspect_tensors(path);
  if (extension == ".model" || extension == ".byte" || path.filename() == "tokenizer.json")
    return inspect_tokenizer(what);
  fail(
      "{}: wanted a folder, .safetensors, .idx, .bin, .model or tokenizer.json, got another kind "
      "of "
      "file",
      what);
}

void run(const InspectOptions& options) {
  const InspectReport report =
      inspect(options.path, options.quick ? Verify::manifest_only : Verify::bytes);
  fmt::print("{}", options.json ? json_text(report.json) + "\n" : report.text);
  if (!report.whole) throw Verdict{kVerdictNo};
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Show what a model, checkpoint, run, safetensors file, token store or tokenizer "
      "holds, and check that it is whole.");
  command->add_option("PATH", options->path, "file, folder or token store prefix")->required();
  command->add_flag("--quick", options->quick,
                    "do not read every byte of checkpoints to compare checksums");
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer(
      "Exits with 3 when something is missing or damaged.\nExample: zaya inspect runs/quickstart");
  command->callback([options] { run(*options); });
}

}  // namespace zaya
