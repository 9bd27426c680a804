#pragma once
// What `zaya inspect` says about each kind of thing: once as JSON, once for people.

#include <string>

#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "core/json.h"

namespace zaya {

struct InspectReport {
  Json json;
  std::string text;   // lines
  bool whole = true;  // false: something is missing or damaged, and the report says what
};

// Whether every byte of a checkpoint is read and compared with its checksum.
enum class Verify { bytes, manifest_only };

// A .safetensors file, or a folder of shards.
InspectReport inspect_tensors(const fs::path& path);
// config.json with weights, and a tokenizer where there is one.
InspectReport inspect_model(const fs::path& folder);
InspectReport inspect_checkpoint(const fs::path& folder, Verify verify);
// A folder with checkpoints in it.
InspectReport inspect_run(const fs::path& folder, Verify verify);
// PREFIX, PREFIX.idx or PREFIX.bin.
InspectReport inspect_token_store(const std::string& prefix);
InspectReport inspect_tokenizer(const std::string& what);

}  // namespace zaya
