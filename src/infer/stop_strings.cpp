#include "infer/stop_strings.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "data/utf8.h"

namespace zaya {

void check_stop_strings(const std::vector<std::string>& stops, std::string_view name) {
  for (const std::string& stop : stops) {
    if (stop.empty()) fail("{}: wanted some text, got an empty string", name);
    if (!is_utf8(stop)) fail("{}: wanted UTF-8 text, got {}", name, json_quoted(stop));
  }
}

StopStrings::Matcher::Matcher(std::string stop)
    : string(std::move(stop)), border(string.size() + 1) {
  for (size_t i = 1; i < string.size(); ++i) border[i + 1] = shorter(border[i], string[i]);
}

size_t StopStrings::Matcher::shorter(size_t length, char byte) const {
  while (length > 0 && string[length] != byte) length = border[length];
  return string[length] == byte ? length + 1 : 0;
}

size_t StopStrings::Matcher::advance(char byte) { return matched = shorter(matched, byte); }

StopStrings::StopStrings(const std::vector<std::string>& stops) {
  for (const std::string& stop : stops) {
    ZAYA_REQUIRE(!stop.empty());
    matchers_.emplace_back(stop);
  }
}

std::string StopStrings::push(std::string_view text) {
  ZAYA_REQUIRE(!found_);
  size_t held = 0;  // bytes at the end of waiting_ that could be the beginning of a stop string
  for (const char byte : text) {
    waiting_ += byte;
    held = 0;
    size_t stop = 0;
    for (Matcher& matcher : matchers_) {
      const size_t matched = matcher.advance(byte);
      if (matched == matcher.string.size()) stop = std::max(stop, matched);
      held = std::max(held, matched);
    }
    if (stop > 0) {
      found_ = true;
      std::string certain = waiting_.substr(0, waiting_.size() - stop);
      waiting_.clear();
      return certain;
    }
  }
  if (text.empty()) return {};
  std::string certain = waiting_.substr(0, waiting_.size() - held);
  waiting_.erase(0, certain.size());
  return certain;
}

std::string StopStrings::finish() { return std::exchange(waiting_, {}); }

}  // namespace zaya
