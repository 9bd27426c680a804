#pragma once
// What a recipe's dtype comes to on this machine, and how that is told.

#include <string_view>

#include "core/dtype.h"
#include "train/recipe.h"

namespace zaya {

// The format products run in; automatic is bf16 where the machine multiplies bf16, else f32.
DType resolve_precision(Precision precision);
// The precision that comes to `compute` on every machine.
Precision precision_of(DType compute);
// "f32" or "bf16".
std::string_view precision_name(DType compute);

// What this machine does with bf16, and so why automatic comes to what it does: a clause.
std::string_view bf16_support();

}  // namespace zaya
