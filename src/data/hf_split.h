#pragma once
// Cutting a text at the matches of a pattern, in the ways tokenizer.json names.

#include <functional>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace zaya {

enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// The member "behavior". Error for a name that is none.
SplitBehavior split_behavior(const JsonObject& object);

// A part of a text; `match` for those that the pattern found.
struct SplitPart {
  size_t begin;
  size_t end;
  bool match;
};

// Every byte of the text is in one part, and parts are in order.
using FindParts = std::function<void(std::string_view, std::vector<SplitPart>&)>;

// Each match is a part, and so is what lies between two.
FindParts parts_of_matches(
    std::function<void(std::string_view, const std::function<void(size_t, size_t)>&)> each_match);
// Each character with the property is a match.
FindParts parts_of_characters(bool (*is_match)(char32_t));

// Joins parts as the behaviour says and leaves out those it removes.
void join_parts(std::vector<SplitPart>& parts, SplitBehavior behavior);

}  // namespace zaya
