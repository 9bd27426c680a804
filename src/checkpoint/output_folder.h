#pragma once
// A folder that appears whole or not at all: its files are gathered in NAME.partial beside it,
// which takes its name at the end.

#include "core/file.h"

namespace zaya {

enum class Existing { keep, replace };

class OutputFolder {
 public:
  // Error when `path` is there and not an empty folder, unless it is to be replaced; when another
  // process is writing to it; and when a NAME.partial is there that no OutputFolder has made.
  OutputFolder(const fs::path& path, Existing existing);
  OutputFolder(const OutputFolder&) = delete;
  // Removes what was gathered unless commit() succeeded.
  ~OutputFolder();

  // Where files are gathered.
  const fs::path& partial() const { return partial_; }
  // Every file in partial() is finished: they get the folder's name. What stood under it is
  // removed.
  void commit();

 private:
  void claim();

  fs::path path_;
  fs::path partial_;
  FileDescriptor claim_;
  bool committed_ = false;
};

// Absolute, without links, dots or a slash at the end.
fs::path plain_path(const fs::path& path);

}  // namespace zaya
