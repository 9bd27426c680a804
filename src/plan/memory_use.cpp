#include "plan/memory_use.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "core/error.h"
#include "train/plan_text.h"

namespace zaya {
namespace {

constexpr const char* kStatus = "/proc/self/status";

int64_t field_bytes(const char* file, const std::string& field) {
  std::ifstream status(file);
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return 1024 * std::stoll(line.substr(field.size()));
  return 0;
}

}  // namespace

int64_t peak_memory_bytes() { return field_bytes(kStatus, "VmHWM:"); }

int64_t resident_memory_bytes() { return field_bytes(kStatus, "VmRSS:"); }

int64_t machine_memory_bytes() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? pages * sysconf(_SC_PAGE_SIZE) : 0;
}

int64_t available_memory_bytes() { return field_bytes("/proc/meminfo", "MemAvailable:"); }

void require_memory(const std::string& what, int64_t bytes) {
  const int64_t machine = machine_memory_bytes();
  if (machine > 0 && bytes > machine)
    fail("{} needs {} of memory, this machine has {}", what, short_bytes(bytes),
         short_bytes(machine));
}

bool forget_peak_memory() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;  // proc(5): resets the high water mark
  return clear.good();
}

}  // namespace zaya
