// A crash between any two changes to the disk. This program's own rename, fsync, unlink and the
// like stand before those of the C library (in its other tests too): they count, and the process
// dies when it is told to.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "checkpoint/checkpoint_dir.h"
#include "support/temp_folder.h"

namespace {

int changes_until_death = -1;  // negative: lives
bool can_exchange = true;      // whether this disk knows RENAME_EXCHANGE
std::string journal;           // R rename, S sync, in order

void change(char what) {
  journal += what;
  if (changes_until_death == 0) ::raise(SIGKILL);
  if (changes_until_death > 0) --changes_until_death;
}

int result_of(int64_t result) { return static_cast<int>(result); }

}  // namespace

extern "C" {

int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  if (flags != 0 && !can_exchange) {
    errno = EINVAL;
    return -1;
  }
  change('R');
  return result_of(::syscall(SYS_renameat2, from_at, from, to_at, to, flags));
}

int rename(const char* from, const char* to) noexcept {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

// Nothing is synced here: a killed process leaves the kernel's view whole, and tests stay quick.
int fsync(int) {
  change('S');
  return 0;
}

int unlinkat(int at, const char* path, int flags) noexcept {
  change('-');
  return result_of(::syscall(SYS_unlinkat, at, path, flags));
}
int unlink(const char* path) noexcept { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) noexcept { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdir(const char* path, mode_t mode) noexcept {
  change('+');
  return result_of(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

}  // extern "C"

namespace zaya {
namespace {

void save(const fs::path& run_dir, int64_t step) {
  CheckpointWriter writer(run_dir, step);
  std::vector<float> values(300, static_cast<float>(step));
  SafetensorsWriter tensors(writer.path_of("model.safetensors"), {{"w", DType::f32, {300}}});
  tensors.add("w", Tensor(values.data(), DType::f32, {300}));
  writer.add(tensors.finish());
  writer.add_bytes("config.json", "{}");
  writer.commit({{"step", step}});
}

// Does `work` in a process that dies before change number `changes`. Returns whether it died.
bool dies(int changes, const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    changes_until_death = changes;
    try {
      work();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "the work itself failed";
  return WIFSIGNALED(status);
}

// The steps listed, newest first; each of them has to be whole.
std::vector<int64_t> whole_steps(const fs::path& run_dir) {
  std::vector<int64_t> steps;
  for (const CheckpointEntry& entry : list_checkpoints(run_dir)) {
    EXPECT_EQ(error_of([&] { verify_checkpoint(entry.path); }), "");
    steps.push_back(entry.step);
  }
  return steps;
}

// Crashes `work` at every change it makes, each time from the checkpoints `before`, and checks what
// is left. Afterwards the next save and clean-up must find their way.
template <class Check>
void crash_everywhere(const std::vector<int64_t>& before,
                      const std::function<void(const fs::path&)>& work, Check check) {
  bool died = true;
  int changes = 0;
  for (; died; ++changes) {
    const TempFolder run;
    for (const int64_t step : before) save(run.path(), step);
    died = dies(changes, [&] { work(run.path()); });
    SCOPED_TRACE(fmt::format("dead before change {}", changes));
    check(whole_steps(run.path()));
    save(run.path(), 9);
    prune_checkpoints(run.path(), 1);
    EXPECT_EQ(list_folder(run.path()), std::vector<std::string>{"step-00000009"});
  }
  EXPECT_GT(changes, 4);
}

using Steps = std::vector<int64_t>;

TEST(CrashAnywhere, InASaveLeavesTheOldSetOrTheNew) {
  crash_everywhere(
      {1}, [](const fs::path& run) { save(run, 2); },
      [](const Steps& left) {
        EXPECT_TRUE(left == Steps{1} || left == (Steps{2, 1}));
      });
}

TEST(CrashAnywhere, InAReplacementLeavesTheStepWhole) {
  crash_everywhere(
      {1, 2}, [](const fs::path& run) { save(run, 2); },
      [](const Steps& left) {
        EXPECT_EQ(left, (Steps{2, 1}));
      });
}

TEST(CrashAnywhere, WithoutExchangeAReplacementLosesNothingOlder) {
  can_exchange = false;
  crash_everywhere(
      {1, 2}, [](const fs::path& run) { save(run, 2); },
      [](const Steps& left) {
        EXPECT_TRUE(left == Steps{1} || left == (Steps{2, 1}));
      });
  can_exchange = true;
}

TEST(CrashAnywhere, InACleanUpLeavesNoHalfCheckpoint) {
  crash_everywhere(
      {1, 2, 3}, [](const fs::path& run) { prune_checkpoints(run, 1); },
      [](const Steps& left) {
        ASSERT_FALSE(left.empty());
        EXPECT_EQ(left[0], 3);
      });
}

TEST(PowerCut, EveryRenameComesAfterASyncAndBeforeOne) {
  const TempFolder run;
  journal.clear();
  save(run.path(), 1);
  // Three files and the folder; the file's own sync before its rename, its folder's after it.
  EXPECT_EQ(journal, "+SRSSRSSRSRS");
}

}  // namespace
}  // namespace zaya
