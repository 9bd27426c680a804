#include "checkpoint/convert_warnings.h"

#include <algorithm>

#include "checkpoint/hf_model.h"
#include "checkpoint/widen.h"

namespace zaya {
namespace {

// The skip slot's probability is at most 1, another's at least 0: it cannot be chosen while its
// balancing bias is at least 1 below the largest of the experts' (of equals the first wins).
bool may_skip(const Tensor& biases) {
  std::vector<float> values(static_cast<size_t>(biases.size()));
  widen(Tensor(values.data(), DType::f32, {biases.size()}), biases);
  return !(values.back() + 1 <= *std::max_element(values.begin(), values.end() - 1));
}

int64_t blocks_that_may_skip(const ModelFile& source, const TensorFolder& folder) {
  int64_t count = 0;
  for (const ParameterSpec& spec : parameter_specs(source.config))
    if (spec.role == Role::router_bias)
      count += may_skip(stored_weights(spec, source.config, source.form, folder).front().values);
  return count;
}

std::string skip_warning(const ModelFile& source, int64_t blocks, Layout to) {
  const bool passes = source.config.skip == Skip::pass;
  return fmt::format(
      "in {} of {} blocks a token may choose the skip slot, which gives {} in this model and {} in "
      "the {} layout: zaya goes by \"zaya_skip\" in config.json, other programs will compute "
      "something else",
      blocks, source.config.num_hidden_layers, passes ? "the gate times its input" : "nothing",
      passes ? "nothing" : "the gate times its input", name_of(to));
}

std::vector<std::string> matrices_left_float(const ModelFile& source, const StoredForm& to) {
  std::vector<std::string> names;
  if (to.bits == 0) return names;
  for (const ParameterSpec& spec : parameter_specs(source.config))
    if (is_product_weight(spec.role) && !stored_as_codes(spec, to)) names.push_back(spec.name);
  return names;
}

}  // namespace

std::vector<std::string> conversion_warnings(const ModelFile& source, const TensorFolder& folder,
                                             const StoredForm& to) {
  std::vector<std::string> warnings;
  const Skip of_layout = to.layout == Layout::current ? Skip::zero : Skip::pass;
  // No other program reads our codes.
  if (source.config.skip != of_layout && to.bits == 0)
    if (const int64_t blocks = blocks_that_may_skip(source, folder); blocks > 0)
      warnings.push_back(skip_warning(source, blocks, to.layout));
  if (source.form.bits != 0)
    warnings.push_back(fmt::format(
        "the matrices of {} are int{} codes: what was lost when they were made does not come back",
        folder.path().string(), source.form.bits));
  const std::vector<std::string> floats = matrices_left_float(source, to);
  if (!floats.empty())
    warnings.push_back(
        fmt::format("{} of the matrices stay float, their inputs not being a multiple of {}: {}{}",
                    floats.size(), kQuantGroup, floats[0], floats.size() > 1 ? ", ..." : ""));
  return warnings;
}

}  // namespace zaya
