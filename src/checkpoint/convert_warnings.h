#pragma once
// What a person should know about a conversion that is not exact for every reader.

#include "checkpoint/model_file.h"
#include "checkpoint/safetensors.h"

namespace zaya {

std::vector<std::string> conversion_warnings(const ModelFile& source, const TensorFolder& folder,
                                             const StoredForm& to);

}  // namespace zaya
