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
    const Span& span = spans_[static_cast<size_t>(id)];
    return std::string_view(text_).substr(span.begin, span.size);
  }
  bool has(int32_t id) const {
    return id >= 0 && id < size() && spans_[static_cast<size_t>(id)].known;
  }
  // One more than the largest id.
  int32_t size() const { return static_cast<int32_t>(spans_.size()); }

 private:
  struct Span {  // of text_
    size_t begin = 0;
    uint32_t size = 0;
    bool known = false;
  };
  struct Slot {
    uint32_t tag = 0;  // part of the content's hash, so that most others need no comparison
    int32_t id = -1;   // -1 where the slot is free
  };
  // The slot of the content, or the one where it would go.
  const Slot& slot_of(std::string_view content, uint64_t hash) const;

  std::string text_;
  std::vector<Span> spans_;  // of every id
  std::vector<Slot> slots_;  // open addressing
};

}  // namespace zaya
