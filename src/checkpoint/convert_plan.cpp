#include "checkpoint/convert_plan.h"

#include <algorithm>

#include "checkpoint/hf_model.h"

namespace zaya {
namespace {

uint64_t bytes_of(const PlannedParameter& parameter) {
  uint64_t bytes = 0;
  for (const TensorDeclaration& tensor : parameter.tensors)
    bytes += static_cast<uint64_t>(tensor.shape.size()) * size_of(tensor.dtype);
  return bytes;
}

// Floats stay as they are; what were codes becomes bf16.
DType float_dtype(const PlannedParameter& parameter, const fs::path& place) {
  const DType dtype = parameter.source.front().values.dtype;
  for (const Weight& weight : parameter.source)
    if (weight.values.dtype != dtype)
      fail("{}: {}: wanted one dtype for all its tensors, got {} and {}", place.string(),
           parameter.spec.name, name_of(dtype), name_of(weight.values.dtype));
  return parameter.source.front().quantized() ? DType::bf16 : dtype;
}

PlannedParameter plan_parameter(const ModelFile& source, const TensorFolder& folder,
                                const StoredForm& to, const ParameterSpec& spec) {
  PlannedParameter planned;
  planned.spec = spec;
  planned.source = stored_weights(spec, source.config, source.form, folder);
  planned.codes = stored_as_codes(spec, to);
  const DType dtype = float_dtype(planned, folder.path());
  for (const StoredTensor& stored : stored_tensors(spec, source.config, to.layout)) {
    const StoredTensor first = planned.codes ? codes_of(stored, to.bits) : stored;
    planned.tensors.push_back(
        {first.name, planned.codes ? codes_dtype(to.bits) : dtype, first.shape});
    if (!planned.codes) continue;
    const StoredTensor scales = scales_of(stored);
    planned.tensors.push_back({scales.name, DType::bf16, scales.shape});
  }
  return planned;
}

void name_files(std::vector<PlannedFile>& files) {
  if (files.size() == 1) {
    files.front().name = "model.safetensors";
    return;
  }
  for (size_t i = 0; i < files.size(); ++i)
    files[i].name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, files.size());
}

// Wide matrices first, so that they begin at multiples of 64 bytes whatever small tensors there are
// and readers can use them where they lie.
void order(PlannedFile& file) {
  const auto key = [](const PlannedParameter& p) {
    return std::pair(!is_product_weight(p.spec.role),
                     -static_cast<int>(size_of(p.tensors[0].dtype)));
  };
  std::stable_sort(file.parameters.begin(), file.parameters.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

}  // namespace

uint64_t bytes_of(const PlannedFile& file) {
  uint64_t bytes = 0;
  for (const PlannedParameter& parameter : file.parameters) bytes += bytes_of(parameter);
  return bytes;
}

std::vector<PlannedFile> plan_conversion(const ModelFile& source, const TensorFolder& folder,
                                         const StoredForm& to, uint64_t shard_bytes) {
  std::vector<PlannedFile> files(1);
  uint64_t bytes = 0;
  for (const ParameterSpec& spec : parameter_specs(source.config)) {
    PlannedParameter parameter = plan_parameter(source, folder, to, spec);
    const uint64_t more = bytes_of(parameter);
    if (!files.back().parameters.empty() && bytes + more > shard_bytes) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += more;
    files.back().parameters.push_back(std::move(parameter));
  }
  for (PlannedFile& file : files) order(file);
  name_files(files);
  return files;
}

Json index_of(const std::vector<PlannedFile>& files) {
  uint64_t total = 0;
  Json map = Json::object();
  for (const PlannedFile& file : files) {
    total += bytes_of(file);
    for (const PlannedParameter& parameter : file.parameters)
      for (const TensorDeclaration& tensor : parameter.tensors) map[tensor.name] = file.name;
  }
  return {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
}

}  // namespace zaya
