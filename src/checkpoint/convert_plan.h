#pragma once
// What a conversion will write: which tensors, in which files. Headers are read, weights are not.

#include "checkpoint/model_file.h"
#include "checkpoint/safetensors.h"

namespace zaya {

struct PlannedParameter {
  ParameterSpec spec;
  std::vector<Weight> source;              // laid end to end, the parameter
  std::vector<TensorDeclaration> tensors;  // laid end to end, the same; or codes and their scales
  bool codes = false;                      // whether `tensors` are those two
};

struct PlannedFile {
  std::string name;
  std::vector<PlannedParameter> parameters;
};

// A parameter's tensors lie in one file. Files hold at most `shard_bytes` of tensors, unless one
// parameter alone has more. `folder` is that of `source`, and has passed check_tensors.
std::vector<PlannedFile> plan_conversion(const ModelFile& source, const TensorFolder& folder,
                                         const StoredForm& to, uint64_t shard_bytes);

uint64_t bytes_of(const PlannedFile& file);  // of its tensors

// model.safetensors.index.json for these files.
Json index_of(const std::vector<PlannedFile>& files);

}  // namespace zaya
