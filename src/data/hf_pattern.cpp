#include "data/hf_pattern.h"

#include <algorithm>

namespace zaya {

HfPattern HfPattern::of(const JsonObject& object, const std::string& place) {
  const JsonObject pattern = object.object("pattern");
  if (pattern.has("Regex"))
    return HfPattern(Regex(pattern.string("Regex"), place + ".pattern.Regex"));
  std::string text = pattern.string("String");
  if (text.empty()) pattern.fail_wanted("String", "a string that is not empty");
  return HfPattern(std::move(text));
}

void HfPattern::each_match(std::string_view text,
                           const std::function<void(size_t, size_t)>& found) const {
  if (regex_) return regex_->each_match(text, found);
  for (size_t at = text.find(text_); at != text.npos; at = text.find(text_, at + text_.size()))
    found(at, at + text_.size());
}

double HfPattern::growth(std::string_view content) const {
  const size_t shortest = regex_ ? regex_->shortest_match() : text_.size();
  const auto bytes = static_cast<double>(content.size());
  // Empty matches lie before each character and keep it.
  return shortest == 0 ? bytes + 1 : std::max(1.0, bytes / static_cast<double>(shortest));
}

std::string HfPattern::replaced(std::string_view text, std::string_view content) const {
  std::string out;
  out.reserve(text.size());
  size_t copied = 0;
  each_match(text, [&](size_t begin, size_t end) {
    out += text.substr(copied, begin - copied);
    out += content;
    copied = end;
  });
  out += text.substr(copied);
  return out;
}

}  // namespace zaya
