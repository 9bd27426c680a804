#pragma once
// What a recipe's description cannot say of one field alone.

#include "core/toml.h"
#include "train/recipe.h"

namespace zaya {

// Fills in fields whose default depends on others. Refuses what it cannot fill in.
void resolve_recipe(Recipe& recipe, const TomlDocument& document);
// Refuses contradictions between fields of a resolved recipe.
void check_recipe(const Recipe& recipe, const TomlDocument& document);

}  // namespace zaya
