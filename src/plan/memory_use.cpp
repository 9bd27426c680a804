#include "plan/memory_use.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "core/error.h"
#include "train/plan_text.h"

namespace zaya {
namespace {

int64_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return 1024 * std::stoll(line.substr(field.size()));
  return 0;
}

}  // namespace

int64_t peak_memory_bytes() { return status_bytes("VmHWM:"); }

int64_t resident_memory_bytes() { return status_bytes("VmRSS:"); }

int64_t machine_memory_bytes() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? pages * sysconf(_SC_PAGE_SIZE) : 0;
}

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
