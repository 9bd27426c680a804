#pragma once
// People name a model by a model folder, a checkpoint or a whole run; all three lead to one folder.

#include <filesystem>

namespace zaya {

// The folder with config.json and the weights: `path` itself (a model or a checkpoint), or the
// newest whole checkpoint of the run at `path`. Error that says what was looked for.
std::filesystem::path locate_model(const std::filesystem::path& path);

}  // namespace zaya
