#include "eval/parity.h"

#include <fmt/format.h>

#include "checkpoint/hf_model.h"
#include "checkpoint/locate.h"
#include "cmd/commands.h"
#include "core/json.h"

namespace zaya {
namespace {

struct ParityOptions {
  std::string model;
  std::string reference;
  std::string dtype = "f32";
  bool json = false;
};

// JSON has no infinity and no NaN: an error that is not a number is null.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

void print_json(const ParityReport& report) {
  Json tensors = Json::array();
  for (const ParityRow& row : report.rows) {
    Json shape = Json::array();
    for (int i = 0; i < row.shape.rank(); ++i) shape.push_back(row.shape[i]);
    tensors.push_back({{"name", row.name},
                       {"shape", shape},
                       {"relative_error", number(row.error)},
                       {"tolerance", row.tolerance},
                       {"passed", row.passed()}});
  }
  const ParityRow& worst = report.worst();
  fmt::print("{}\n", json_text({{"passed", report.passed()},
                                {"worst_relative_error", number(worst.error)},
                                {"worst_tensor", worst.name},
                                {"tensors", tensors}}));
}

void print_table(const ParityReport& report) {
  size_t width = 6;
  for (const ParityRow& row : report.rows) width = std::max(width, row.name.size());
  fmt::print("{:<{}}  {:<16}  {:>14}  {:>9}  verdict\n", "tensor", width, "shape", "relative error",
             "tolerance");
  for (const ParityRow& row : report.rows)
    fmt::print("{:<{}}  {:<16}  {:>14.2e}  {:>9.1e}  {}{}{}\n", row.name, width,
               row.shape.to_string(), row.error, row.tolerance, row.passed() ? "ok" : "OVER",
               row.note.empty() ? "" : "  # ", row.note);
  const ParityRow& worst = report.worst();
  fmt::print("\n{}: {} tensors compared; {}: {} at {:.2e}\n", report.passed() ? "passed" : "FAILED",
             report.rows.size(),
             report.passed() ? "nearest to its tolerance" : "furthest over its tolerance",
             worst.name, worst.error);
}

void run(const ParityOptions& options) {
  Context ctx;
  const DType compute = options.dtype == "bf16" ? DType::bf16 : DType::f32;
  const SafetensorsFile reference = SafetensorsFile::open(options.reference);
  Zaya model = load_model(ctx, locate_model(options.model), compute,
                          has_gradients(reference) ? Gradients::allocate : Gradients::none);
  const ParityReport report = check_parity(ctx, model, reference);
  options.json ? print_json(report) : print_table(report);
  if (!report.passed()) throw Verdict{kVerdictNo};
}

}  // namespace

void add_parity_command(CLI::App& app) {
  auto options = std::make_shared<ParityOptions>();
  CLI::App* command = app.add_subcommand(
      "parity",
      "Compare a model's logits, loss, hidden states, expert choices and gradients with "
      "reference tensors, and its cached decoding with the full forward.");
  command->add_option("MODEL_DIR", options->model, "model folder, checkpoint or run")->required();
  command->add_option("REFERENCE", options->reference, "reference.safetensors")->required();
  command->add_option("--dtype", options->dtype, "compute format")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer(
      "Exits with 3 when a tensor is over its tolerance.\n"
      "Example: zaya parity tests/fixtures/native-a tests/fixtures/native-a/reference.safetensors");
  command->callback([options] { run(*options); });
}

}  // namespace zaya
