#pragma once
// Where an op runs. One Context belongs to one engine (a trainer, a decoder); ops take it first.

#include "backend/profile.h"

namespace zaya {

struct Context {
  // CPU ops run on the process's OpenMP threads (backend/cpu/threads.h). A GPU backend adds its
  // device and stream here.
  Profile* profile = nullptr;  // where the model notes the time of each group of ops; null: nowhere
};

}  // namespace zaya
