#pragma once
// A tokenizer.json, read fast: the vocabulary and the merges, which are nearly all of it, as flat
// lists, and the rest as a document.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace zaya {

inline constexpr int32_t kMaxTokenId = 1 << 24;

struct HfFile {
  struct Token {
    std::string_view content;
    int32_t id;
  };
  struct Merge {
    std::string_view left;
    std::string_view right;
  };

  std::string place;                    // begins every error about the file
  Json document;                        // without model.vocab and model.merges
  std::vector<Token> vocab;             // in the file's order; ids of 0 to kMaxTokenId
  std::vector<Merge> merges;            // by rank
  std::shared_ptr<const void> strings;  // what the views point into
};

// Error for what is no JSON, nests deeper than kMaxJsonDepth or names a member twice, and for a
// vocabulary or merges of the wrong shape. Model types other than BPE are refused first.
HfFile parse_hf_file(const std::string& bytes, std::string place);

}  // namespace zaya
