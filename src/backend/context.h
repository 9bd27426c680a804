#pragma once
// Where an op runs. One Context belongs to one engine (a trainer, a decoder); ops take it first.

#include "backend/profile.h"

namespace zaya {

// How products treat the rows of their input. A row's bits do not depend on the rows beside it
// either way, but the two round differently.
enum class Rows {
  together,  // many at a time: training, prompts
  apart,     // each by itself, the weight streamed once: tokens generated one by one
};

struct Context {
  // CPU ops run on the process's OpenMP threads (backend/cpu/threads.h). A GPU backend adds its
  // device and stream here.
  Profile* profile = nullptr;  // where the model notes the time of each group of ops; null: nowhere
  Rows rows = Rows::together;
};

}  // namespace zaya
