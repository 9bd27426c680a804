#pragma once
// The config.json of a model folder in any form that zaya opens.

#include <filesystem>

#include "checkpoint/layout.h"
#include "core/json.h"

namespace zaya {

struct ModelFile {
  ModelConfig config;
  StoredForm form;
  Json json;  // as it stands in the file
};

// Errors name file, field, what was wanted and what came.
ModelFile read_model_file(const std::filesystem::path& config_json);
ModelFile model_file_from_json(Json json, const std::string& place);

// The config.json of the same model stored in another form: its fields in that layout's terms, and
// what `source` says beside them (token ids, dtype, dropout, flags of precision, keys nobody here
// knows). auto_map is left out: the code it points to stays behind.
Json config_in_form(const ModelFile& source, const StoredForm& form);

}  // namespace zaya
