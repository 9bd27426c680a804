#pragma once
// A hash table from pairs of token ids, made for many fast look-ups.

#include <bit>
#include <cstdint>
#include <vector>

#include "data/hf_vocabulary.h"

namespace zaya {

template <class Value>
class PairTable {
 public:
  // Room for so many pairs.
  explicit PairTable(size_t pairs = 0) : slots_(std::bit_ceil(2 * pairs + 2)) {}

  // A pair that is there already gets the new value.
  void set(int32_t left, int32_t right, const Value& value) {
    const uint64_t key = key_of(left, right);
    Slot& slot = slots_[slot_of(key)];
    slot.key = key;
    slot.value = value;
  }

  const Value* find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    const Slot& slot = slots_[slot_of(key)];
    return slot.key == key ? &slot.value : nullptr;
  }

 private:
  struct Slot {
    uint64_t key = kFree;
    Value value{};
  };
  static constexpr uint64_t kFree = ~uint64_t{0};

  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const {
    uint64_t mixed = (key ^ seed_) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 32) * seed_;
    size_t slot = (mixed ^ mixed >> 29) & (slots_.size() - 1);
    while (slots_[slot].key != key && slots_[slot].key != kFree)
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  uint64_t seed_ = hash_seed();
  std::vector<Slot> slots_;
};

}  // namespace zaya
