#pragma once
// A model folder written again in another form: the other layout, or its matrices as codes.

#include <functional>

#include "backend/context.h"
#include "checkpoint/layout.h"
#include "checkpoint/output_folder.h"

namespace zaya {

struct ConvertOptions {
  StoredForm to;
  uint64_t shard_bytes = 4'000'000'000;  // of tensors in a file, above which there are several
  Existing existing = Existing::keep;
};

struct ConvertSummary {
  StoredForm from, to;
  int64_t parameters = 0;
  uint64_t bytes_before = 0, bytes = 0;  // of the weights' files
  std::vector<std::string> files;        // of weights
  std::vector<std::string> copied;       // tokenizer and generation settings
  std::vector<std::string> warnings;     // whole sentences
};

// Bytes of tensors written, and to be written.
using ConvertProgress = std::function<void(uint64_t done, uint64_t total)>;

// Between the two layouts every tensor keeps its bits, so that there and back gives the same
// tensors and an equivalent config.json. Codes made floats again become bf16. A head that is stored
// beside the embeddings it is tied to is left out. Weights pass through piece by piece, whatever
// the size of the model. `out` appears whole at the end, or not at all; the space is checked first.
ConvertSummary convert_model(Context& ctx, const fs::path& in, const fs::path& out,
                             const ConvertOptions& options, const ConvertProgress& progress);

}  // namespace zaya
