#pragma once
// Threads, in a form that cannot change a result: work is cut into items that do not depend on the
// number of threads, and items never share an output.

#include <cstddef>
#include <cstdint>
#include <exception>

#include "core/ceil_div.h"

namespace zaya {

int thread_count();
// Threads used from now on, no more than there are cores; 0 restores the default (OMP_NUM_THREADS
// or every core).
void set_thread_count(int count);

// Calls f(i) for every i in [0, count), on any thread in any order. A call from inside another
// parallel_for runs its items one after another. The first exception thrown is rethrown here.
template <class F>
void parallel_for(int64_t count, F&& f) {
  std::exception_ptr error;
#pragma omp parallel for schedule(dynamic) if (count > 1)
  for (int64_t i = 0; i < count; ++i) {
    try {
      f(i);
    } catch (...) {
#pragma omp critical(zaya_parallel_for_error)
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

// Cuts [0, size) into pieces of `grain` (the last may be shorter) and calls f(begin, end) for each.
template <class F>
void parallel_ranges(int64_t size, int64_t grain, F&& f) {
  parallel_for(ceil_div(size, grain), [&](int64_t i) {
    const int64_t begin = i * grain;
    f(begin, begin + grain < size ? begin + grain : size);
  });
}

// Memory of the calling thread, 64-byte aligned, kept and grown between calls. Each call site with
// a Tag of its own has a buffer of its own, so nested users do not overwrite one another.
void* grow_thread_buffer(void*& data, size_t& capacity, size_t bytes);

template <class Tag, class T>
T* thread_buffer(int64_t count) {
  struct Buffer {
    void* data = nullptr;
    size_t capacity = 0;
    ~Buffer() { grow_thread_buffer(data, capacity, 0); }
  };
  thread_local Buffer buffer;
  return static_cast<T*>(
      grow_thread_buffer(buffer.data, buffer.capacity, static_cast<size_t>(count) * sizeof(T)));
}

}  // namespace zaya
