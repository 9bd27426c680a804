#include "fuzz/file_calls.h"

#include <sys/mman.h>

#include <cstdarg>

namespace {

std::string watched;  // ends with "/"; empty: nothing is watched
int opened_count = 0;

constexpr size_t kPage = 4096;

}  // namespace

namespace zaya::fuzz {

WatchedFolder::WatchedFolder(const fs::path& folder) {
  watched = folder.string() + "/";
  opened_count = 0;
}
WatchedFolder::~WatchedFolder() { watched.clear(); }
int WatchedFolder::opened() const { return opened_count; }

}  // namespace zaya::fuzz

extern "C" {

int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...);
void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void* address, size_t bytes);

int __wrap_open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
  va_end(arguments);
  if (!watched.empty()) {
    const std::string_view name = path;
    FUZZ_CHECK_TEXT(name.starts_with(watched), path);
    FUZZ_CHECK_TEXT(zaya::is_plain_name(name.substr(watched.size())), path);
    ++opened_count;
  }
  return __real_open(path, flags, mode);
}

void* __wrap_mmap(void*, size_t bytes, int protection, int, int fd, off_t offset) {
  FUZZ_CHECK(protection == PROT_READ);
  void* copy = nullptr;
  if (::posix_memalign(&copy, kPage, bytes) != 0) return MAP_FAILED;
  FUZZ_CHECK(::pread(fd, copy, bytes, offset) == static_cast<ssize_t>(bytes));
  return copy;
}

int __wrap_munmap(void* address, size_t) {
  std::free(address);
  return 0;
}
}
