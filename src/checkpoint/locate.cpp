#include "checkpoint/locate.h"

#include "checkpoint/checkpoint_dir.h"

namespace zaya {

fs::path locate_model(const fs::path& path) {
  if (!fs::exists(path)) fail("{}: no such file or folder", path.string());
  if (fs::exists(path / "config.json")) return path;
  if (!fs::is_directory(path))
    fail("{}: wanted a model folder, a checkpoint or a run's folder, got a file", path.string());
  const GoodCheckpoint good = newest_good_checkpoint(path);
  if (good.checkpoint) return good.checkpoint->path;
  std::string reasons;
  for (const std::string& reason : good.skipped) reasons += "\n  " + reason;
  fail("{}: found neither config.json (a model) nor a whole checkpoint (a run){}", path.string(),
       reasons);
}

}  // namespace zaya
