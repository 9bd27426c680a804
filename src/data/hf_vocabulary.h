#pragma once
// The vocabulary of a tokenizer.json's model: content to id and back.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/hf_file.h"

namespace zaya {

// A number no file can know, that keys of hash tables are mixed with.
uint64_t hash_seed();

class HfVocabulary {
 public:
  // Error for an id that two contents have, a content that two ids have, and ids far beyond the
  // number of tokens.
  explicit HfVocabulary(const HfFile& file);

  std::optional<int32_t> find(std::string_view content) const;
  // Empty where the ids have a gap.
  std::string_view content(int32_t id) const {
    return std::string_view(text_).substr(begins_[static_cast<size_t>(id)],
                                          sizes_[static_cast<size_t>(id)]);
  }
  bool has(int32_t id) const { return id >= 0 && id < size() && known_[static_cast<size_t>(id)]; }
  // One more than the largest id.
  int32_t size() const { return static_cast<int32_t>(begins_.size()); }

 private:
  // Where the content is, or where it would go.
  size_t slot_of(std::string_view content) const;

  std::string text_;
  std::vector<size_t> begins_;  // of every id
  std::vector<uint32_t> sizes_;
  std::vector<bool> known_;
  std::vector<int32_t> slots_;  // open addressing: ids, or -1
};

}  // namespace zaya
