#pragma once
// Regular expressions of tokenizer.json. HF runs them in Oniguruma with Ruby's syntax; here PCRE2
// runs them. What both read alike is passed on, \s, \w and \b are written out as Oniguruma means
// them, and what the two read differently is refused.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace zaya {

class Regex {
 public:
  // `place` begins every error, also those of matching.
  Regex(std::string_view pattern, std::string place);

  // Of every match, in characters. 0: it may be empty.
  size_t shortest_match() const;
  // Calls `found` with the begin and end of each match, from left to right. Error when the pattern
  // runs into the matcher's limits, which keep a hostile one from running for ever.
  void each_match(std::string_view text, const std::function<void(size_t, size_t)>& found) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
  std::string place_;
};

// The pattern as PCRE2 has to be given it. Error for what it would read differently.
std::string to_pcre2(std::string_view pattern, std::string_view place);

}  // namespace zaya
