#include "core/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/ceil_div.h"

namespace zaya {
namespace {
constexpr size_t kAlignment = 64;
size_t aligned(size_t bytes) { return round_up(bytes, kAlignment); }

// Large memory lies on huge pages where the system has them: walking down the rows of a wide matrix
// touches a page a row, more than the processor remembers of small ones.
constexpr size_t kHugePage = size_t{2} << 20;
void* allocate(size_t bytes) {
  if (bytes < 2 * kHugePage) return std::aligned_alloc(kAlignment, bytes);
  void* memory = std::aligned_alloc(kHugePage, round_up(bytes, kHugePage));
  if (memory) madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: nothing is lost if it is refused
  return memory;
}
}  // namespace

void Arena::Free::operator()(void* memory) const { std::free(memory); }

Arena::Arena(size_t capacity) : capacity_(aligned(std::max<size_t>(capacity, 1))) {
  memory_.reset(allocate(capacity_));
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
