#pragma once

#include <string_view>

namespace zaya {

// The text of recipes/bench-small.toml, put into the program by CMake: `zaya bench` measures the
// same model wherever it is started.
extern const std::string_view kYardstick;
inline constexpr const char* kYardstickName = "recipes/bench-small.toml";

// Of recipes/zaya1-base.toml: the geometry of ZAYA1-base and ZAYA1-8B.
extern const std::string_view kZaya1Recipe;
inline constexpr const char* kZaya1RecipeName = "recipes/zaya1-base.toml";

}  // namespace zaya
