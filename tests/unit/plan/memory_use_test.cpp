#include "plan/memory_use.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "core/error.h"

namespace zaya {
namespace {

constexpr int64_t kBytes = 64 << 20;
// The kernel counts each thread's pages in batches, and the test itself takes a few.
constexpr int64_t kSlack = 8 << 20;

// Memory straight from the kernel, so that giving it back cannot be put off.
void take_and_give_back() {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kBytes);
  munmap(memory, kBytes);
}

TEST(MemoryUse, ThePeakRemembersWhatWasGivenBack) {
  if (peak_memory_bytes() == 0) GTEST_SKIP() << "/proc/self/status says nothing of memory";
  forget_peak_memory();
  const int64_t before = resident_memory_bytes();
  take_and_give_back();
  EXPECT_GT(peak_memory_bytes(), before + kBytes - kSlack);
  EXPECT_LT(resident_memory_bytes(), before + kSlack);
}

TEST(MemoryUse, ForgettingStartsThePeakFromWhatIsHeld) {
  if (!forget_peak_memory()) GTEST_SKIP() << "the kernel does not reset the high water mark";
  take_and_give_back();
  const int64_t peak = peak_memory_bytes();
  ASSERT_TRUE(forget_peak_memory());
  EXPECT_LT(peak_memory_bytes(), peak - kBytes + kSlack);
  EXPECT_GE(peak_memory_bytes() + kSlack, resident_memory_bytes());
}

TEST(MemoryUse, TheMachineHasMoreThanTheProcessHolds) {
  EXPECT_GT(machine_memory_bytes(), resident_memory_bytes());
}

TEST(MemoryUse, RefusesWhatTheMachineDoesNotHave) {
  EXPECT_NO_THROW(require_memory("a small run", 1 << 20));
  try {
    require_memory("the run", machine_memory_bytes() + (int64_t{1} << 30));
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("the run needs ")) << error.what();
  }
}

}  // namespace
}  // namespace zaya
