#include "cmd/inspect_report.h"

#include <algorithm>
#include <map>

#include "checkpoint/checkpoint_dir.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/hf_model.h"
#include "checkpoint/model_file.h"
#include "data/token_store.h"
#include "data/tokenizer.h"
#include "train/plan_text.h"

namespace zaya {
namespace {

std::string size_text(uint64_t bytes) { return short_bytes(static_cast<int64_t>(bytes)); }

uint64_t bytes_of(const TensorFolder& tensors) {
  uint64_t bytes = 0;
  for (const SafetensorsFile& file : tensors.files()) bytes += file.file_bytes();
  return bytes;
}

// "F32 in 1 file, 12.0 MiB, 85 tensors"
std::string weights_text(const TensorFolder& tensors) {
  std::map<std::string_view, int64_t> types;
  for (const std::string& name : tensors.names()) ++types[name_of(tensors.get(name).dtype)];
  std::string text;
  for (const auto& [type, count] : types)
    text += fmt::format("{}{}", text.empty() ? "" : " and ", type);
  const size_t files = tensors.files().size();
  return fmt::format("{} in {} file{}, {}, {} tensors", text, files, files == 1 ? "" : "s",
                     size_text(bytes_of(tensors)), tensors.names().size());
}

Json tensors_json(const TensorFolder& tensors) {
  Json list = Json::array();
  for (const std::string& name : tensors.names()) {
    const Tensor tensor = tensors.get(name);
    Json shape = Json::array();
    for (int i = 0; i < tensor.shape.rank(); ++i) shape.push_back(tensor.shape[i]);
    list.push_back({{"name", name},
                    {"dtype", std::string(name_of(tensor.dtype))},
                    {"shape", std::move(shape)},
                    {"bytes", tensor.bytes()}});
  }
  return list;
}

std::string shape_text(const ModelConfig& c) {
  return fmt::format(
      "shape        {} blocks, hidden {}, {} query and {} key/value heads of {}, {} experts of {}, "
      "router {}\n",
      c.num_hidden_layers, c.hidden_size, c.num_attention_heads, c.num_key_value_heads, c.head_dim,
      c.num_experts, c.moe_intermediate_size, c.router_hidden_size);
}

std::string context_text(const ModelConfig& c) {
  const auto sliding = std::count(c.sliding_layers.begin(), c.sliding_layers.end(), true);
  return fmt::format("vocabulary   {}, embeddings {}\ncontext      {}, rotary base {}{}\n",
                     c.vocab_size, c.tie_word_embeddings ? "tied" : "untied",
                     c.max_position_embeddings, c.rope_theta,
                     sliding == 0 ? ""
                                  : fmt::format(", {} of {} blocks see a window of {} tokens",
                                                sliding, c.num_hidden_layers, c.sliding_window));
}

std::string parameters_text(const ParameterCounts& counts) {
  const auto total = static_cast<double>(counts.total);
  const auto text = [&](int64_t count) { return short_count(static_cast<double>(count), total); };
  return fmt::format("parameters   {} in all, {} without embeddings, {} active per token\n",
                     text(counts.total), text(counts.without_embeddings), text(counts.active));
}

bool has_tokenizer(const fs::path& folder) {
  return fs::exists(folder / "tokenizer.json") || fs::exists(folder / "tokenizer.model") ||
         fs::exists(folder / "tokenizer.byte");
}

// Why a checkpoint is not whole; empty when it is.
std::string damage_of(const fs::path& checkpoint, Verify verify) {
  try {
    verify == Verify::bytes ? verify_checkpoint(checkpoint) : read_manifest(checkpoint);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string verdict_text(const std::string& damage, Verify verify) {
  if (!damage.empty()) return fmt::format("DAMAGED: {}", damage);
  return verify == Verify::bytes ? "whole" : "bytes not read";
}

}  // namespace

InspectReport inspect_tensors(const fs::path& path) {
  const TensorFolder tensors = TensorFolder::open(path);
  size_t width = 6;
  for (const std::string& name : tensors.names()) width = std::max(width, name.size());
  InspectReport report;
  report.text =
      fmt::format("{:<{}}  {:<4}  {:<20}  {:>10}\n", "tensor", width, "type", "shape", "size");
  for (const std::string& name : tensors.names()) {
    const Tensor tensor = tensors.get(name);
    report.text +=
        fmt::format("{:<{}}  {:<4}  {:<20}  {:>10}\n", name, width, name_of(tensor.dtype),
                    tensor.shape.to_string(), size_text(static_cast<uint64_t>(tensor.bytes())));
  }
  report.text += fmt::format("\n{}\n", weights_text(tensors));
  Json metadata = Json::object();
  for (const SafetensorsFile& file : tensors.files()) metadata.update(Json(file.metadata()));
  report.json = {{"kind", "tensors"}, {"metadata", metadata}, {"tensors", tensors_json(tensors)}};
  return report;
}

InspectReport inspect_model(const fs::path& folder) {
  const ModelFile file = read_model_file(folder / "config.json");
  const ModelConfig& config = file.config;
  const TensorFolder tensors = TensorFolder::open(folder);
  const ParameterCounts counts = count_parameters(config);
  InspectReport report;
  report.text = fmt::format("model        {} ({})\n{}{}{}weights      {}\n", folder.string(),
                            text_of(file.form), shape_text(config), context_text(config),
                            parameters_text(counts), weights_text(tensors));
  report.json = {{"kind", "model"},
                 {"layout", std::string(name_of(file.form.layout))},
                 {"quantized_bits", file.form.bits == 0 ? Json() : Json(file.form.bits)},
                 {"geometry", hf_config_to_json(config)},
                 {"config", file.json},
                 {"bytes", bytes_of(tensors)},
                 {"parameters", counts.total},
                 {"parameters_without_embeddings", counts.without_embeddings},
                 {"active_parameters", counts.active},
                 {"tensors", tensors_json(tensors)}};
  if (has_tokenizer(folder)) {
    const InspectReport tokenizer = inspect_tokenizer(folder.string());
    report.text += tokenizer.text;
    report.json["tokenizer"] = tokenizer.json;
  }
  try {
    check_tensors(config, file.form, tensors);
  } catch (const Error& error) {
    report.whole = false;
    report.text += fmt::format("DAMAGED: {}\n", error.what());
    report.json["damage"] = error.what();
  }
  report.json["whole"] = report.whole;
  return report;
}

InspectReport inspect_checkpoint(const fs::path& folder, Verify verify) {
  const Manifest manifest = read_manifest(folder);
  const std::string damage = damage_of(folder, verify);
  InspectReport report;
  report.whole = damage.empty();
  report.text = fmt::format("checkpoint   {}: step {}, saved {}, {}\n", folder.string(),
                            manifest.step, manifest.created, verdict_text(damage, verify));
  Json files = Json::array();
  for (const FileSums& file : manifest.files) {
    report.text += fmt::format("file         {:<28} {:>10}\n", file.name, size_text(file.bytes));
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  report.json = {{"kind", "checkpoint"},
                 {"step", manifest.step},
                 {"created", manifest.created},
                 {"bytes", manifest.bytes()},
                 {"files", std::move(files)},
                 {"state", manifest.state},
                 {"verified", report.whole && verify == Verify::bytes}};
  if (!report.whole) report.json["damage"] = damage;
  if (report.whole && fs::exists(folder / "config.json")) {
    const InspectReport model = inspect_model(folder);
    report.text += model.text;
    report.json["model"] = model.json;
    report.whole = model.whole;
  }
  return report;
}

InspectReport inspect_run(const fs::path& folder, Verify verify) {
  InspectReport report;
  Json list = Json::array();
  uint64_t total = 0;
  for (const CheckpointEntry& entry : list_checkpoints(folder)) {
    const std::string damage = damage_of(entry.path, verify);
    report.whole &= damage.empty();
    uint64_t bytes = 0;
    for (const std::string& name : list_folder(entry.path)) {
      std::error_code ignored;  // a folder in there has no size
      const uint64_t size = fs::file_size(entry.path / name, ignored);
      if (!ignored) bytes += size;
    }
    total += bytes;
    report.text += fmt::format("step {:<8}  {:>10}  {}\n", entry.step, size_text(bytes),
                               verdict_text(damage, verify));
    Json item = {{"step", entry.step},
                 {"path", entry.path.string()},
                 {"bytes", bytes},
                 {"verified", damage.empty() && verify == Verify::bytes}};
    if (!damage.empty()) item["damage"] = damage;
    list.push_back(std::move(item));
  }
  report.text =
      fmt::format("run          {}: {} checkpoint{}, {}\n{}", folder.string(), list.size(),
                  list.size() == 1 ? "" : "s", size_text(total), report.text);
  report.json = {{"kind", "run"}, {"checkpoints", std::move(list)}};
  return report;
}

InspectReport inspect_token_store(const std::string& prefix) {
  const TokenStore store(prefix);
  int64_t shortest = 0, longest = 0;
  for (int64_t d = 0; d < store.document_count(); ++d) {
    const int64_t length = store.document_begin(d + 1) - store.document_begin(d);
    shortest = d == 0 ? length : std::min(shortest, length);
    longest = std::max(longest, length);
  }
  InspectReport report;
  report.text = fmt::format(
      "token store  {}\ntokens       {}, {} each\ndocuments    {}, the shortest of {} and the "
      "longest of {} tokens\n",
      store.bin_path().string(), store.token_count(), name_of(store.dtype()),
      store.document_count(), shortest, longest);
  report.json = {{"kind", "token store"},
                 {"tokens", store.token_count()},
                 {"documents", store.document_count()},
                 {"sequences", store.sequence_count()},
                 {"dtype", std::string(name_of(store.dtype()))},
                 {"shortest_document", shortest},
                 {"longest_document", longest}};
  return report;
}

InspectReport inspect_tokenizer(const std::string& what) {
  const auto tokenizer = open_tokenizer(what);
  const auto id = [](std::optional<int32_t> token) { return token ? Json(*token) : Json(); };
  InspectReport report;
  report.text = fmt::format("tokenizer    {}\n", tokenizer->description());
  report.json = {{"kind", "tokenizer"},
                 {"name", tokenizer->name()},
                 {"vocab_size", tokenizer->vocab_size()},
                 {"bos", id(tokenizer->bos())},
                 {"eos", id(tokenizer->eos())},
                 {"exact", tokenizer->exact()}};
  return report;
}

}  // namespace zaya
