#include "checkpoint/hf_model.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/model_file.h"
#include "checkpoint/widen.h"
#include "ops/linear/quantize.h"

namespace zaya {
namespace {

void require_finite(const Tensor& tensor, const std::string& name, const TensorFolder& folder) {
  const float* values = tensor.as<float>();
  const float* const end = values + tensor.size();
  const float* const bad = std::find_if(values, end, [](float x) { return !std::isfinite(x); });
  if (bad != end)
    fail("{}: {}: element {} is {}: wanted finite weights", folder.path().string(), name,
         bad - values, *bad);
}

// to [N, K] f32
void widen_weight(Context& ctx, const Tensor& to, const Weight& from) {
  if (from.quantized())
    dequantize(ctx, to, from);
  else
    widen(to, from.values);
}

// The parameter in f32, its stored pieces laid end to end.
void load_weight(Context& ctx, const Tensor& to, const std::string& name,
                 const std::vector<Weight>& stored, const TensorFolder& folder) {
  const Tensor rows = to.reshaped({to.rows(), to.columns()});
  const int64_t each = rows.rows() / static_cast<int64_t>(stored.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    const auto begin = static_cast<int64_t>(i) * each;
    widen_weight(ctx, rows.row_range(begin, begin + each), stored[i]);
  }
  require_finite(to, name, folder);
}

ModelFile read_config(const fs::path& folder) {
  if (!fs::is_directory(folder))
    fail("{}: wanted a model folder (config.json and model.safetensors), found {}", folder.string(),
         fs::exists(folder) ? "a file" : "nothing");
  return read_model_file(folder / "config.json");
}

// F16 in memory of its own, which the parameters keep.
std::vector<Weight> widened(Parameters& parameters, std::vector<Weight> stored) {
  for (Weight& weight : stored) {
    if (weight.values.dtype != DType::f16) continue;
    const auto memory = std::make_shared<Arena>(4 * static_cast<size_t>(weight.values.size()));
    const Tensor floats = memory->tensor(DType::f32, weight.values.shape);
    widen(floats, weight.values);
    parameters.keep(memory);
    weight = floats;
  }
  return stored;
}

// One matrix an expert, whether a tensor holds one of them or all.
std::vector<Weight> matrices_of(const ParameterSpec& spec, const std::vector<Weight>& stored) {
  if (spec.per_expert && stored.size() == 1) return stacked_matrices(stored.front());
  return stored;
}

}  // namespace

std::vector<Weight> stored_weights(const ParameterSpec& spec, const ModelConfig& config,
                                   const StoredForm& form, const TensorFolder& folder) {
  std::vector<Weight> weights;
  for (const StoredTensor& stored : stored_tensors(spec, config, form.layout)) {
    Weight weight = folder.get(stored.name);
    if (weight.quantized()) weight.scales = folder.get(scales_of(stored).name);
    weights.push_back(weight);
  }
  return weights;
}

void load_parameters(Context& ctx, Parameters& parameters, const ModelConfig& config,
                     const StoredForm& form, const TensorFolder& folder) {
  for (Parameter& p : parameters.all())
    load_weight(ctx, p.weight, p.spec.name, stored_weights(p.spec, config, form, folder), folder);
  parameters.refresh_compute(ctx);
}

Zaya load_model(Context& ctx, const fs::path& folder, DType compute, Gradients gradients) {
  const ModelFile file = read_config(folder);
  const TensorFolder tensors = TensorFolder::open(folder);
  check_tensors(file.config, file.form, tensors);
  Zaya model(file.config, compute, gradients);
  load_parameters(ctx, model.parameters(), file.config, file.form, tensors);
  return model;
}

Zaya open_model(Context& ctx, const fs::path& folder, const OpenOptions& options) {
  const ModelFile file = read_config(folder);
  const auto tensors = std::make_shared<const TensorFolder>(TensorFolder::open(folder));
  check_tensors(file.config, file.form, *tensors);
  Parameters parameters = Parameters::to_run(file.config);
  parameters.keep(tensors);
  for (Parameter& p : parameters.all()) {
    std::vector<Weight> stored = stored_weights(p.spec, file.config, file.form, *tensors);
    if (is_read_in_place(p.spec.role))
      p.matrices = matrices_of(p.spec, widened(parameters, std::move(stored)));
    else
      load_weight(ctx, p.weight, p.spec.name, stored, *tensors);
  }
  DType natural = DType::f32;
  for (const Parameter& p : parameters.all())
    if (is_product_weight(p.spec.role) && p.matrix().format() != WeightFormat::f32)
      natural = DType::bf16;
  return Zaya(file.config, options.compute.value_or(natural), std::move(parameters));
}

FileSums save_parameters(const fs::path& file, const Parameters& parameters, DType dtype) {
  std::vector<TensorDeclaration> declarations;
  for (const Parameter& p : parameters.all())
    declarations.push_back({p.spec.name, dtype, p.spec.shape});
  SafetensorsWriter writer(file, std::move(declarations), {{"format", "pt"}});
  for (const Parameter& p : parameters.all()) writer.add(p.spec.name, p.weight);
  return writer.finish();
}

}  // namespace zaya
