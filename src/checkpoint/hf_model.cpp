#include "checkpoint/hf_model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "checkpoint/hf_config.h"

namespace zaya {
namespace {

// IEEE half precision to float.
float half_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f, mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

bool loadable(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
}

void widen(const Tensor& to, const Tensor& from) {
  float* out = to.as<float>();
  const int64_t n = to.size();
  if (from.dtype == DType::f32) {
    std::copy_n(from.as<float>(), n, out);
  } else if (from.dtype == DType::bf16) {
    const bf16* in = from.as<bf16>();
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]);
  } else {
    const auto* in = static_cast<const uint16_t*>(from.data);
    for (int64_t i = 0; i < n; ++i) out[i] = half_to_float(in[i]);
  }
}

void require_finite(const Tensor& tensor, const std::string& name, const TensorFolder& folder) {
  const float* values = tensor.as<float>();
  const float* const end = values + tensor.size();
  const float* const bad = std::find_if(values, end, [](float x) { return !std::isfinite(x); });
  if (bad != end)
    fail("{}: {}: element {} is {}: wanted finite weights", folder.path().string(), name,
         bad - values, *bad);
}

// What keeps the folder's tensors from being those of the specs, a line each.
std::vector<std::string> differences(const std::vector<ParameterSpec>& specs,
                                     const TensorFolder& folder) {
  std::vector<std::string> lines;
  std::set<std::string, std::less<>> known;
  for (const ParameterSpec& spec : specs) {
    known.insert(spec.name);
    const Tensor* found = folder.find(spec.name);
    if (!found)
      lines.push_back(fmt::format("missing: {} {}", spec.name, spec.shape.to_string()));
    else if (found->shape != spec.shape)
      lines.push_back(fmt::format("{}: wanted shape {}, got {}", spec.name, spec.shape.to_string(),
                                  found->shape.to_string()));
    else if (!loadable(found->dtype))
      lines.push_back(
          fmt::format("{}: wanted F32, BF16 or F16, got {}", spec.name, name_of(found->dtype)));
  }
  for (const std::string& name : folder.names())
    if (!known.contains(name))
      lines.push_back(fmt::format("not part of the model: {}", json_quoted(name)));
  return lines;
}

}  // namespace

void check_tensors(const ModelConfig& config, const TensorFolder& folder) {
  const std::vector<std::string> lines = differences(parameter_specs(config), folder);
  if (lines.empty()) return;
  constexpr size_t kShown = 40;
  std::string text =
      fmt::format("{}: the tensors are not those of its config.json ({} differences)",
                  folder.path().string(), lines.size());
  for (size_t i = 0; i < std::min(lines.size(), kShown); ++i) text += "\n  " + lines[i];
  if (lines.size() > kShown) text += fmt::format("\n  and {} more", lines.size() - kShown);
  throw Error(text);
}

void load_parameters(Context& ctx, Parameters& parameters, const TensorFolder& folder) {
  for (Parameter& p : parameters.all()) {
    widen(p.weight, folder.get(p.spec.name));
    require_finite(p.weight, p.spec.name, folder);
  }
  parameters.refresh_compute(ctx);
}

Zaya load_model(Context& ctx, const std::filesystem::path& folder, DType compute,
                Gradients gradients) {
  if (!std::filesystem::is_directory(folder))
    fail("{}: wanted a model folder (config.json and model.safetensors), found {}", folder.string(),
         std::filesystem::exists(folder) ? "a file" : "nothing");
  const ModelConfig config = read_hf_config(folder / "config.json");
  const TensorFolder tensors = TensorFolder::open(folder);
  check_tensors(config, tensors);
  Zaya model(config, compute, gradients);
  load_parameters(ctx, model.parameters(), tensors);
  return model;
}

FileSums save_parameters(const std::filesystem::path& file, const Parameters& parameters,
                         DType dtype) {
  std::vector<TensorDeclaration> declarations;
  for (const Parameter& p : parameters.all())
    declarations.push_back({p.spec.name, dtype, p.spec.shape});
  SafetensorsWriter writer(file, std::move(declarations), {{"format", "pt"}});
  for (const Parameter& p : parameters.all()) writer.add(p.spec.name, p.weight);
  return writer.finish();
}

}  // namespace zaya
