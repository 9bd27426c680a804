#include "core/arena.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace zaya {
namespace {
constexpr size_t kAlignment = 64;
size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
}  // namespace

void Arena::Free::operator()(void* memory) const { std::free(memory); }

Arena::Arena(size_t capacity) : capacity_(aligned(std::max<size_t>(capacity, 1))) {
  memory_.reset(std::aligned_alloc(kAlignment, capacity_));
  if (!memory_) throw std::bad_alloc();
  std::memset(memory_.get(), 0, capacity_);
}

Tensor Arena::tensor(DType dtype, Shape shape) {
  const size_t bytes = aligned(static_cast<size_t>(shape.size()) * size_of(dtype));
  ZAYA_REQUIRE(measuring() || used_ + bytes <= capacity_);
  void* data = measuring() ? nullptr : static_cast<char*>(memory_.get()) + used_;
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return Tensor(data, dtype, shape);
}

}  // namespace zaya
