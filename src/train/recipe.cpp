#include "train/recipe.h"

#include "core/fields_docs.h"
#include "core/fields_json.h"
#include "core/toml.h"
#include "train/recipe_check.h"
#include "train/recipe_fields.h"

namespace zaya {
namespace {

using Json = nlohmann::ordered_json;

Recipe recipe_of(TomlDocument document, std::span<const std::string> overrides) {
  for (const std::string& assignment : overrides) document.set(assignment);
  Recipe recipe;
  document.read(recipe);
  resolve_recipe(recipe, document);
  check_recipe(recipe, document);
  return recipe;
}

// Tables and keys that may change under a run without changing its numbers.
bool is_arithmetic(const std::string& key) {
  for (const char* name : {"name", "threads", "max_steps", "validation", "checkpoint", "metrics"})
    if (key == name) return false;
  return true;
}

void collect_changes(const Json& before, const Json& after, const std::string& path,
                     std::vector<std::string>& changes) {
  if (before == after) return;
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : before.items()) {
      const std::string at = path.empty() ? key : path + "." + key;
      collect_changes(value, after.contains(key) ? after[key] : Json(), at, changes);
    }
    for (const auto& [key, value] : after.items())
      if (!before.contains(key))
        collect_changes(Json(), value, path.empty() ? key : path + "." + key, changes);
  } else if (before.is_array() && after.is_array() && before.size() == after.size()) {
    for (size_t i = 0; i < before.size(); ++i)
      collect_changes(before[i], after[i], fmt::format("{}[{}]", path, i), changes);
  } else {
    changes.push_back(fmt::format("{}: {} became {}", path, before.dump(), after.dump()));
  }
}

Json arithmetic_part(const std::string& text) {
  Json part = Json::object();
  const Json whole = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!whole.is_object()) fail("the recipe in a checkpoint: wanted a JSON object, got other text");
  for (const auto& [key, value] : whole.items())
    if (is_arithmetic(key)) part[key] = value;
  return part;
}

}  // namespace

Recipe load_recipe(const std::string& path, std::span<const std::string> overrides) {
  return recipe_of(TomlDocument::read_file(path), overrides);
}

Recipe parse_recipe(std::string_view text, const std::string& name,
                    std::span<const std::string> overrides) {
  return recipe_of(TomlDocument::parse(text, name), overrides);
}

std::string recipe_text(const Recipe& recipe) { return to_toml(recipe); }

std::string recipe_json(const Recipe& recipe) { return json_of(recipe).dump(); }

std::vector<std::string> recipe_changes(const std::string& before, const std::string& after) {
  std::vector<std::string> changes;
  collect_changes(arithmetic_part(before), arithmetic_part(after), "", changes);
  return changes;
}

std::string recipe_docs() { return to_docs<Recipe>(); }

}  // namespace zaya
