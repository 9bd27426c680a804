#include "data/hf_vocabulary.h"

#include <bit>
#include <functional>
#include <random>

#include "core/error.h"

namespace zaya {
namespace {

// Ids may have gaps, but a small file may not ask for large tables.
constexpr int64_t kFreeIds = 65536;

}  // namespace

uint64_t hash_seed() {
  static const uint64_t seed = [] {
    std::random_device random;
    return uint64_t{random()} << 32 | random() | 1;
  }();
  return seed;
}

HfVocabulary::HfVocabulary(const HfFile& file) {
  int32_t largest = -1;
  size_t bytes = 0;
  for (const auto& [content, id] : file.vocab) {
    largest = std::max(largest, id);
    bytes += content.size();
  }
  const int64_t limit = 2 * static_cast<int64_t>(file.vocab.size()) + kFreeIds;
  if (largest >= limit)
    fail("{}: model.vocab: wanted ids below {} for {} tokens, got {}", file.place, limit,
         file.vocab.size(), largest);
  const auto ids = static_cast<size_t>(largest + 1);
  begins_.resize(ids);
  sizes_.resize(ids);
  known_.resize(ids);
  slots_.assign(std::bit_ceil(2 * file.vocab.size() + 2), -1);
  text_.reserve(bytes);
  for (const auto& [content, id] : file.vocab) {
    const auto i = static_cast<size_t>(id);
    if (known_[i])
      fail("{}: model.vocab[{}]: wanted an id of its own, got {}, which {} has", file.place,
           json_quoted(content), id, json_quoted(this->content(id)));
    known_[i] = true;
    begins_[i] = text_.size();
    sizes_[i] = static_cast<uint32_t>(content.size());
    text_ += content;
    const size_t slot = slot_of(content);
    if (slots_[slot] != -1)
      fail("{}: the name {} comes twice in one object", file.place, json_quoted(content));
    slots_[slot] = id;
  }
}

size_t HfVocabulary::slot_of(std::string_view content) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = std::_Hash_bytes(content.data(), content.size(), hash_seed()) & mask;
  while (slots_[slot] != -1 && this->content(slots_[slot]) != content) slot = (slot + 1) & mask;
  return slot;
}

std::optional<int32_t> HfVocabulary::find(std::string_view content) const {
  const int32_t id = slots_[slot_of(content)];
  return id == -1 ? std::nullopt : std::optional(id);
}

}  // namespace zaya
