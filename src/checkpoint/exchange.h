#pragma once
// Two folders exchange their names.

#include "core/file.h"

namespace zaya {

// `fresh` takes the name of `old` and the other way round, in one step. File systems that cannot
// exchange (some network ones) see renames, by way of the name `aside`: a crash between them leaves
// the old folder under that name.
void exchange_folders(const fs::path& fresh, const fs::path& old, const fs::path& aside);

}  // namespace zaya
