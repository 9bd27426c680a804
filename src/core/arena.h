#pragma once
// Memory planned once. The same code that carves tensors out of an arena first runs against a
// measuring arena (no memory, null data pointers) to learn how much it needs.

#include <cstddef>
#include <memory>

#include "core/tensor.h"

namespace zaya {

class Arena {
 public:
  // Measures only: every tensor it hands out has a null data pointer.
  Arena() = default;
  // Owns `capacity` bytes, zeroed.
  explicit Arena(size_t capacity);

  bool measuring() const { return memory_ == nullptr; }
  // A contiguous tensor, its start aligned to 64 bytes. Contents are whatever was there before.
  // Asking for more than the capacity is a broken contract (ContractError).
  Tensor tensor(DType dtype, Shape shape);

  // Everything handed out after mark() is given back by release(mark).
  size_t mark() const { return used_; }
  void release(size_t mark) { used_ = mark; }
  size_t used() const { return used_; }
  size_t peak() const { return peak_; }
  size_t capacity() const { return capacity_; }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Free> memory_;
  size_t capacity_ = 0;
  size_t used_ = 0;
  size_t peak_ = 0;
};

// Gives back, at the end of a scope, what the scope took.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.release(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  size_t mark_;
};

}  // namespace zaya
