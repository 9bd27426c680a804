#include "checkpoint/exchange.h"

#include <fcntl.h>
#include <stdio.h>  // renameat2

#include <cerrno>

#include "core/error.h"

namespace zaya {

void exchange_folders(const fs::path& fresh, const fs::path& old, const fs::path& aside) {
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, old.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS)
    fail_errno(fmt::format("cannot exchange {} and", fresh.string()), old.string());
  remove_folder(aside);
  rename_durably(old, aside);
  rename_durably(fresh, old);
  rename_durably(aside, fresh);
}

}  // namespace zaya
