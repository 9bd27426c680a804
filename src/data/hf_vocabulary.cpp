#include "data/hf_vocabulary.h"

#include <bit>
#include <functional>
#include <random>

#include "core/error.h"

namespace zaya {
namespace {

// Ids may have gaps, but a small file may not ask for large tables.
constexpr int64_t kFreeIds = 65536;

uint64_t hash_of(std::string_view content) {
  return std::_Hash_bytes(content.data(), content.size(), hash_seed());
}
uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

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
  spans_.resize(ids);
  slots_.resize(std::bit_ceil(2 * file.vocab.size() + 2));
  text_.reserve(bytes);
  for (const auto& [content, id] : file.vocab) {
    Span& span = spans_[static_cast<size_t>(id)];
    if (span.known)
      fail("{}: model.vocab[{}]: wanted an id of its own, got {}, which {} has", file.place,
           json_quoted(content), id, json_quoted(this->content(id)));
    span = {text_.size(), static_cast<uint32_t>(content.size()), true};
    text_ += content;
    const uint64_t hash = hash_of(content);
    const auto at = static_cast<size_t>(&slot_of(content, hash) - slots_.data());
    if (slots_[at].id != -1)
      fail("{}: the name {} comes twice in one object", file.place, json_quoted(content));
    slots_[at] = {tag_of(hash), id};
  }
}

const HfVocabulary::Slot& HfVocabulary::slot_of(std::string_view content, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id == -1 || (slot.tag == tag_of(hash) && this->content(slot.id) == content))
      return slot;
  }
}

std::optional<int32_t> HfVocabulary::find(std::string_view content) const {
  const int32_t id = slot_of(content, hash_of(content)).id;
  return id == -1 ? std::nullopt : std::optional(id);
}

}  // namespace zaya
