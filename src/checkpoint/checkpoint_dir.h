#pragma once
// A checkpoint is a folder `step-00000200` in a run's folder. It is written as
// `step-00000200.partial`; when every file is on disk and synced, its manifest.json is written (the
// list of files, their lengths and checksums, and the trainer's state), and the folder is renamed.
// A crash at any moment leaves the checkpoints there were, or those and the new one. One process
// writes to a run's folder.

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checksums.h"
#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "core/json.h"

namespace zaya {

struct Manifest {
  int64_t step = 0;
  std::string created;  // UTC, ISO 8601
  std::vector<FileSums> files;
  Json state;  // the trainer's own, an object
  uint64_t bytes() const;
};

class CheckpointWriter {
 public:
  // Creates the partial folder, after removing what an earlier attempt at this step left. The run's
  // folder must exist.
  CheckpointWriter(const fs::path& run_dir, int64_t step);
  CheckpointWriter(const CheckpointWriter&) = delete;
  // Removes the partial folder unless commit() succeeded.
  ~CheckpointWriter();

  // Where files are written before they are added.
  const fs::path& folder() const { return partial_; }
  fs::path path_of(std::string_view name) const;
  // Adds a file that was written to folder(): the result of SafetensorsWriter::finish().
  void add(FileSums sums);
  // Writes and adds a small file.
  void add_bytes(std::string_view name, std::string_view bytes);
  // Writes the manifest and renames. Returns the checkpoint's folder. A checkpoint of the same step
  // that exists already is replaced, after the new one has been read back and verified.
  fs::path commit(const Json& state);

 private:
  void replace(const fs::path& target);

  fs::path run_dir_;
  fs::path partial_;
  Manifest manifest_;
  bool committed_ = false;
};

// Error when there is no manifest, or it is not whole.
Manifest read_manifest(const fs::path& checkpoint);
// Reads every byte. Throws an Error that names the file and tensor that are bad.
Manifest verify_checkpoint(const fs::path& checkpoint);

struct CheckpointEntry {
  int64_t step = 0;
  fs::path path;
};
// The committed checkpoints, newest first. Their bytes are not looked at.
std::vector<CheckpointEntry> list_checkpoints(const fs::path& run_dir);

struct GoodCheckpoint {
  std::optional<CheckpointEntry> checkpoint;  // none: there is no good one
  std::vector<std::string> skipped;           // why each newer one was passed over
};
// Verifies from the newest on and stops at the first that is whole.
GoodCheckpoint newest_good_checkpoint(const fs::path& run_dir);

// Removes leftovers of unfinished saves, and of the checkpoints older than the newest verified one
// all but the `keep_last - 1` newest and those whose step is a multiple of `keep_every` (0: none).
// Checkpoints newer than the newest verified one are left for a person to look at. When none
// verifies, none is removed. Returns what was removed. No CheckpointWriter may be at work in the
// folder.
std::vector<fs::path> prune_checkpoints(const fs::path& run_dir, int64_t keep_last,
                                        int64_t keep_every = 0);

}  // namespace zaya
