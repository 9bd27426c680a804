#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace zaya {

RunFolder::RunFolder(const fs::path& path) : path_(path) {
  make_folder(path);
  const fs::path lock = path / ".lock";
  lock_ = FileDescriptor(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock_.get() < 0) fail_errno("cannot write to the run's folder:", lock.string());
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    fail("{}: another process is training into this folder; wait for it or choose another --out",
         path.string());
}

namespace {

// Damaged checkpoints get another name, so that none of them takes the place of a whole one among
// those that are kept. What can still be read of them is its owner's to use or remove.
void set_aside_newer(const std::vector<CheckpointEntry>& checkpoints, int64_t step) {
  for (const CheckpointEntry& checkpoint : checkpoints) {
    if (checkpoint.step <= step) continue;
    const fs::path aside = checkpoint.path.string() + ".damaged";
    remove_folder(aside);
    rename_durably(checkpoint.path, aside);
  }
}

}  // namespace

ResumePoint choose_resume_point(const fs::path& run_dir, const std::string& resume) {
  const std::vector<CheckpointEntry> existing = list_checkpoints(run_dir);
  if (resume == "never") {
    if (!existing.empty())
      fail(
          "{}: holds checkpoints up to step {}, and --resume never would train over them; choose "
          "another --out or remove the folder",
          run_dir.string(), existing.front().step);
    return {};
  }
  if (resume == "auto") {
    GoodCheckpoint good = newest_good_checkpoint(run_dir);
    ResumePoint point{{}, std::move(good.skipped)};
    if (good.checkpoint) {
      point.checkpoint = good.checkpoint->path;
      set_aside_newer(existing, good.checkpoint->step);
    } else if (!existing.empty()) {
      std::string reasons;
      for (const std::string& reason : point.messages) reasons += "\n  " + reason;
      fail("{}: none of its checkpoints is whole; move them away to start anew{}", run_dir.string(),
           reasons);
    }
    return point;
  }
  if (!fs::exists(fs::path(resume) / "manifest.json"))
    fail("--resume: wanted auto, never or a checkpoint's folder (one with manifest.json), got {}",
         resume);
  const int64_t step = read_manifest(resume).step;
  if (!existing.empty() && existing.front().step > step)
    fail(
        "{}: holds a checkpoint of step {}, newer than the one to resume from (step {}); choose "
        "another --out",
        run_dir.string(), existing.front().step, step);
  return {fs::path(resume), {}};
}

}  // namespace zaya
