#pragma once
// Counts the memory that the whole process asks for, libraries included. Include it in one source
// file of a test program.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace zaya::test {

// Calls of malloc and its relatives for at least `kLarge` bytes while counting.
inline constexpr size_t kLarge = 1024;
inline std::atomic<bool> counting{false};
inline std::atomic<int64_t> large_allocations{0};

inline void note_allocation(size_t bytes) {
  if (bytes >= kLarge && counting) ++large_allocations;
}

}  // namespace zaya::test

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kCountsAllocations = false;  // the sanitizer has its own malloc
#else
inline constexpr bool kCountsAllocations = true;

// glibc's own, behind the names that the program and its libraries call.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) {
  zaya::test::note_allocation(bytes);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  zaya::test::note_allocation(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  zaya::test::note_allocation(bytes);
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  zaya::test::note_allocation(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  zaya::test::note_allocation(bytes);
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : 12;  // ENOMEM
}
}
#endif
