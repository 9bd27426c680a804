#pragma once

#include <string_view>

namespace zaya {

// The text of recipes/bench-small.toml, put into the program by CMake: `zaya bench` measures the
// same model wherever it is started.
extern const std::string_view kYardstick;
inline constexpr const char* kYardstickName = "recipes/bench-small.toml";

}  // namespace zaya
