#pragma once
// How a model's parameters are cut into the tensors of a file. The parameters bear the names of the
// current layout; the original one (the first releases') has its own names, two alternating layers
// a block (2 b attention, 2 b + 1 experts) and a tensor for each expert.

#include <string>
#include <string_view>
#include <vector>

#include "core/weight.h"
#include "model/parameters.h"

namespace zaya {

enum class Layout { current, original };

std::string_view name_of(Layout layout);

// How a folder stores its parameters.
struct StoredForm {
  Layout layout = Layout::current;
  int bits = 0;  // 8 or 4: product weights may be codes (core/weight.h); 0: none is
};

std::string text_of(const StoredForm& form);  // "current layout, int8"

struct StoredTensor {
  std::string name;
  Shape shape;
};

// The tensors whose data, laid end to end, is the parameter's: one, or in the original layout's
// experts one for each expert.
std::vector<StoredTensor> stored_tensors(const ParameterSpec& spec, const ModelConfig& config,
                                         Layout layout);

// ---- Codes --------------------------------------------------------------------------------------

// A weight [..., K] as codes is two tensors: NAME, i8 [..., K] or u8 [..., K / 2], and NAME.scales,
// bf16 [..., K / 32].
DType codes_dtype(int bits);
StoredTensor codes_of(const StoredTensor& plain, int bits);
StoredTensor scales_of(const StoredTensor& plain);

// Whether a folder of such codes holds this parameter as codes. Norms, convolutions, the router,
// scales, biases and temperatures stay float, and so does a matrix whose inputs no group divides.
bool stored_as_codes(const ParameterSpec& spec, const StoredForm& form);

}  // namespace zaya
