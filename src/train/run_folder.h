#pragma once
// The folder of a run: one process at a time, and where a run goes on from.

#include <optional>
#include <string>

#include "checkpoint/checkpoint_dir.h"
#include "train/trainer.h"

namespace zaya {

// Creates the folder and holds it: a second process that trains into it gets an Error.
class RunFolder {
 public:
  explicit RunFolder(const fs::path& path);
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  FileDescriptor lock_;
};

struct ResumePoint {
  std::optional<fs::path> checkpoint;  // none: start at step 0
  std::vector<std::string> messages;   // what a person should know: checkpoints passed over
};

// "auto": the newest whole checkpoint of the folder, if any; damaged newer ones are renamed to
// step-N.damaged. "never": none, and an Error when the
// folder holds checkpoints (nothing is overwritten). Otherwise the path of a checkpoint; an Error
// when the folder holds newer ones, which a later "auto" would take instead.
ResumePoint choose_resume_point(const fs::path& run_dir, const std::string& resume);

}  // namespace zaya
