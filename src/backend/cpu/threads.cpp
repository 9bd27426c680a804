#include "backend/cpu/threads.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace zaya {
namespace {
const int kDefaultThreads = omp_get_max_threads();
}

int thread_count() { return omp_get_max_threads(); }

void set_thread_count(int count) {
  // More threads than cores only wait for one another. Two at least, so that tests of determinism
  // have something to compare on one core.
  const int most = std::max(omp_get_num_procs(), 2);
  omp_set_num_threads(std::min(count > 0 ? count : kDefaultThreads, most));
}

// bytes == 0 frees.
void* grow_thread_buffer(void*& data, size_t& capacity, size_t bytes) {
  if (bytes != 0 && bytes <= capacity) return data;
  std::free(data);
  data = nullptr;
  capacity = (bytes + 4095) / 4096 * 4096;
  if (capacity == 0) return nullptr;
  data = std::aligned_alloc(64, capacity);
  if (!data) throw std::bad_alloc();
  return data;
}

}  // namespace zaya
