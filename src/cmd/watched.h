#pragma once

#include <unistd.h>

#include <optional>
#include <string>

#include "cmd/progress.h"
#include "plan/gemm_bench.h"

namespace zaya {

// Runs what takes some seconds, with a bar for whoever watches; a log of figures needs none.
template <class F>
auto watched(F&& measure) {
  std::optional<ProgressBar> bar;
  if (isatty(STDERR_FILENO)) bar.emplace();
  return measure([&](std::string_view stage, double done) {
    if (bar) bar->update(std::string(stage), done);
  });
}

}  // namespace zaya
