#include "train/metrics.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"

namespace zaya {
namespace {

using Json = nlohmann::ordered_json;

// nlohmann writes what is not finite as null.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The step of a line of metrics.jsonl; -1 when it is no such line.
int64_t step_of(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return -1;
  return json["step"].get<int64_t>();
}

double min_of(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

}  // namespace

std::string step_line(const StepMetrics& m) {
  Json json;
  json["step"] = m.step;
  json["tokens"] = m.tokens;
  json["loss"] = m.loss;
  if (m.bits_per_byte != 0) json["bits_per_byte"] = m.bits_per_byte;
  json["grad_norm"] = m.grad_norm;
  json["learning_rate"] = m.learning_rate;
  json["tokens_per_second"] = m.tokens_per_second;
  json["expert_load_entropy"] = m.expert_entropy;
  json["skipped_steps"] = m.skipped_steps;
  if (m.skipped) {
    json["skipped"] = m.skip_reason;
    json["skipped_samples"] = m.skipped_samples;
  }
  return dump(json);
}

std::string validation_line(const ValidationMetrics& m) {
  Json json;
  json["step"] = m.step;
  json["tokens"] = m.tokens;
  json["val_loss"] = m.loss;
  json["val_bits_per_byte"] = m.bits_per_byte;
  if (!m.loss_by_source.empty()) json["val_loss_by_source"] = m.loss_by_source;
  if (!m.bits_per_byte_by_source.empty())
    json["val_bits_per_byte_by_source"] = m.bits_per_byte_by_source;
  return dump(json);
}

void truncate_metrics_after(const std::string& path, int64_t step) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    if (!std::filesystem::exists(path)) return;
    fail_errno("cannot open", path);
  }
  DurableFile out(path);
  for (std::string line; std::getline(in, line);) {
    if (in.eof()) break;  // no newline: the line was being written when the run was killed
    const int64_t at = step_of(line);
    if (at < 0 || at > step) continue;
    out.write(line);
    out.write("\n");
  }
  if (in.bad()) fail_errno("cannot read", path);
  out.finish();
}

MetricsWriter::MetricsWriter(const std::string& directory, int64_t resumed_step, bool tensorboard)
    : path_(directory + "/metrics.jsonl") {
  if (resumed_step > 0) truncate_metrics_after(path_, resumed_step);
  const auto mode = resumed_step > 0 ? std::ios::app : std::ios::trunc;
  file_.open(path_, std::ios::binary | std::ios::out | mode);
  if (!file_) fail_errno("cannot open", path_);
  if (tensorboard) events_ = std::make_unique<EventWriter>(directory, resumed_step + 1);
}

void MetricsWriter::line(const std::string& text) {
  file_ << text << '\n' << std::flush;
  if (!file_) fail_errno("cannot write", path_);
}

void MetricsWriter::write(const StepMetrics& m) {
  line(step_line(m));
  if (events_ == nullptr) return;
  Scalars scalars = {{"train/loss", m.loss},
                     {"train/grad_norm", m.grad_norm},
                     {"train/learning_rate", m.learning_rate},
                     {"train/tokens_per_second", m.tokens_per_second},
                     {"train/skipped_steps", static_cast<double>(m.skipped_steps)},
                     {"experts/load_entropy_min", min_of(m.expert_entropy)}};
  if (m.bits_per_byte != 0) scalars.emplace_back("train/bits_per_byte", m.bits_per_byte);
  for (size_t block = 0; block < m.expert_entropy.size(); ++block)
    scalars.emplace_back(fmt::format("experts/load_entropy/{:03}", block), m.expert_entropy[block]);
  events_->write(m.step, scalars);
}

void MetricsWriter::write(const ValidationMetrics& m) {
  line(validation_line(m));
  if (events_ == nullptr) return;
  Scalars scalars = {{"validation/loss", m.loss}, {"validation/bits_per_byte", m.bits_per_byte}};
  for (const auto& [source, loss] : m.loss_by_source)
    scalars.emplace_back("validation/loss/" + source, loss);
  for (const auto& [source, bits] : m.bits_per_byte_by_source)
    scalars.emplace_back("validation/bits_per_byte/" + source, bits);
  events_->write(m.step, scalars);
}

}  // namespace zaya
