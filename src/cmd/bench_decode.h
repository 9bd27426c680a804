#pragma once

#include <CLI/CLI.hpp>

namespace zaya {

// `zaya bench decode`.
void add_decode_bench(CLI::App& parent);

}  // namespace zaya
