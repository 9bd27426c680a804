#pragma once
// Two system calls as the fuzz programs see them (the linker's --wrap puts them in).
//   mmap: files are copied to the heap instead, where the address sanitizer sees a read one byte
//   past the end. A map is followed by the rest of its page, where such a read goes unnoticed.
//   open: while a WatchedFolder lives, a file outside its folder is a crash.

#include "fuzz/support.h"

namespace zaya::fuzz {

class WatchedFolder {
 public:
  explicit WatchedFolder(const fs::path& folder);
  WatchedFolder(const WatchedFolder&) = delete;
  ~WatchedFolder();
  // Files opened so far.
  int opened() const;
};

}  // namespace zaya::fuzz
