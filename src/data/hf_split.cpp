#include "data/hf_split.h"

#include <algorithm>

#include "data/hf_unicode.h"

namespace zaya {

SplitBehavior split_behavior(const JsonObject& object) {
  const std::string name = object.string("behavior");
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  object.fail_wanted("behavior",
                     "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

FindParts parts_of_matches(
    std::function<void(std::string_view, const std::function<void(size_t, size_t)>&)> each_match) {
  return
      [each_match = std::move(each_match)](std::string_view text, std::vector<SplitPart>& parts) {
        size_t at = 0;
        each_match(text, [&](size_t begin, size_t end) {
          if (begin > at) parts.push_back({at, begin, false});
          parts.push_back({begin, end, true});
          at = end;
        });
        if (at < text.size()) parts.push_back({at, text.size(), false});
      };
}

FindParts parts_of_characters(bool (*is_match)(char32_t)) {
  return parts_of_matches([is_match](std::string_view text, const auto& found) {
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      if (is_match(next_character(text, at))) found(begin, at);
    }
  });
}

void join_parts(std::vector<SplitPart>& parts, SplitBehavior behavior) {
  if (behavior == SplitBehavior::isolated) return;
  if (behavior == SplitBehavior::removed) {
    std::erase_if(parts, [](const SplitPart& part) { return part.match; });
    return;
  }
  const bool backwards = behavior == SplitBehavior::merged_with_next;
  if (backwards) std::reverse(parts.begin(), parts.end());
  size_t kept = 0;
  bool previous_match = false;
  for (const SplitPart& part : parts) {
    const bool joins = behavior == SplitBehavior::contiguous ? part.match == previous_match
                                                             : part.match && !previous_match;
    previous_match = part.match;
    if (!joins || kept == 0) {
      parts[kept++] = part;
    } else {
      SplitPart& last = parts[kept - 1];
      last.begin = std::min(last.begin, part.begin);
      last.end = std::max(last.end, part.end);
    }
  }
  parts.resize(kept);
  if (backwards) std::reverse(parts.begin(), parts.end());
}

}  // namespace zaya
