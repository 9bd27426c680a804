// Ruby's regular expressions to PCRE2's.

#include "core/error.h"
#include "core/json.h"
#include "data/hf_regex.h"

namespace zaya {
namespace {

constexpr std::string_view kSpace = "\\p{White_Space}";
constexpr std::string_view kNoSpace = "\\P{White_Space}";
constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view place) : rest_(pattern), place_(place) {}

  std::string run() {
    while (!rest_.empty()) step();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail("{}: wanted a regular expression without {}, got {} in it", place_, what,
         json_quoted(rest_.substr(0, 16)));
  }

  void copy(size_t bytes) {
    out_ += rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
  }

  void step() {
    switch (rest_[0]) {
      case '\\':
        return escape(false);
      case '[':
        return character_class();
      case '(':
        return group();
      case '{':
        return counted_repeat();
      default:
        return copy(1);
    }
  }

  void group() {
    for (const std::string_view plain : {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (rest_.starts_with(plain)) return copy(plain.size());
    }
    if (rest_.starts_with("(?") || rest_.starts_with("(*")) refuse("this kind of group");
    copy(1);
  }

  // Ruby reads "{,3}" as a repeat, and a "+" behind a counted repeat as another one.
  void counted_repeat() {
    const size_t end = rest_.find('}');
    const std::string_view counts = rest_.substr(0, end);
    const bool is_repeat = end != rest_.npos && counts.size() > 1 && counts[1] != ',' &&
                           counts.find_first_not_of("{0123456789,") == counts.npos;
    if (!is_repeat) refuse("a brace that begins no {n}, {n,} or {n,m}");
    if (rest_.substr(end + 1).starts_with('+')) refuse("a + behind a counted repeat");
    copy(end + 1);
  }

  void replace(std::string_view text) {
    out_ += text;
    rest_.remove_prefix(2);
  }

  void escape(bool in_class) {
    if (rest_.size() < 2) refuse("a backslash at its end");
    const char c = rest_[1];
    if (c == 's') return replace(kSpace);
    if (c == 'S') return replace(kNoSpace);
    if (c == 'w') return replace(in_class ? std::string(kWord) : fmt::format("[{}]", kWord));
    if (c == 'W' && !in_class) return replace(fmt::format("[^{}]", kWord));
    if ((c == 'b' || c == 'B') && !in_class) return boundary(c == 'b');
    if (c == 'p' || c == 'P') return property();
    if (c == 'x') return code_point();
    const bool is_letter = (c | 32) >= 'a' && (c | 32) <= 'z';
    const std::string_view shared = in_class ? "dDnrtf" : "dDnrtfAzZ";
    if ((is_letter && shared.find(c) == shared.npos) || (c >= '0' && c <= '9'))
      refuse("this escape");
    copy(2);
  }

  void boundary(bool wanted) {
    constexpr auto kBoundary = "(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))";
    constexpr auto kNoBoundary = "(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))";
    replace(wanted ? fmt::format(kBoundary, kWord) : fmt::format(kNoBoundary, kWord));
  }

  void property() {
    const size_t end = rest_.find('}');
    if (rest_.size() < 3 || rest_[2] != '{' || end == rest_.npos)
      refuse("a property that is not in braces");
    copy(end + 1);
  }

  void code_point() {
    const bool braces = rest_.size() > 2 && rest_[2] == '{';
    const size_t end = braces ? rest_.find('}') : 3;
    if (end == rest_.npos || end >= rest_.size()) refuse("a code point that does not end");
    if (!braces && !(rest_[2] >= '0' && rest_[2] <= '7'))
      refuse("bytes that are no characters of their own");
    copy(end + 1);
  }

  void character_class() {
    copy(1);
    if (rest_.starts_with('^')) copy(1);
    if (rest_.starts_with(']')) refuse("an empty class");
    while (!rest_.starts_with(']')) {
      if (rest_.empty()) refuse("a class that does not end");
      if (rest_[0] == '[') refuse("a class inside a class");
      if (rest_.starts_with("&&")) refuse("an intersection of classes");
      if (rest_[0] == '\\') {
        escape(true);
      } else {
        copy(1);
      }
    }
    copy(1);
  }

  std::string_view rest_;
  std::string_view place_;
  std::string out_;
};

}  // namespace

std::string to_pcre2(std::string_view pattern, std::string_view place) {
  return Translator(pattern, place).run();
}

}  // namespace zaya
