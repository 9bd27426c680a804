#pragma once
// Trains a SentencePiece BPE tokenizer that keeps every byte of a text: ids 0 unk, 1 bos, 2 eos,
// 3..258 the bytes, then merges (newlines and runs of spaces among them) and characters.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text_reader.h"

namespace zaya {

struct TrainTokenizerOptions {
  TextOptions text = {};
  // Text to learn from. When the inputs hold more, documents are taken evenly from all of them (the
  // same ones each time).
  int64_t max_bytes = int64_t{256} << 20;
  // Characters beyond this share of the text are left to the byte pieces.
  double character_coverage = 0.9995;
  int threads = 0;  // 0: as many as the machine has, at most 16
};

struct TrainTokenizerSummary {
  int32_t vocab_size = 0;
  int64_t documents = 0;  // used for training
  int64_t bytes = 0;
};

// stage is "reading" or "learning"; fraction is 0 to 1, or negative where it is not known.
using TrainTokenizerProgress = std::function<void(std::string_view stage, double fraction)>;

// Writes the model to `out` durably. Error for a vocabulary too small to hold the bytes and
// characters or too large for the text.
TrainTokenizerSummary train_tokenizer(const std::vector<std::string>& inputs, int32_t vocab_size,
                                      const std::filesystem::path& out,
                                      const TrainTokenizerOptions& options,
                                      const TrainTokenizerProgress& progress);

}  // namespace zaya
