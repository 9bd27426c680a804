#pragma once
// Ends a text where one of some strings comes up, while the text arrives in pieces.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace zaya {

// A string of `stops` that is empty or no UTF-8: an Error that begins with `name`.
void check_stop_strings(const std::vector<std::string>& stops, std::string_view name);

class StopStrings {
 public:
  // Not empty, and UTF-8: then a text of whole characters is cut between characters.
  explicit StopStrings(const std::vector<std::string>& stops);

  // Takes more text and returns what is certain to come before any stop string: what could still be
  // the beginning of one waits. The string that is complete first ends the text; of several that
  // are complete at the same byte, the longest. How the text was cut into pieces makes no
  // difference. Nothing more may be pushed then.
  std::string push(std::string_view text);
  bool found() const { return found_; }
  // What was still waiting, once the text is over; empty when a stop string was found.
  std::string finish();

 private:
  // Knuth, Morris and Pratt's automaton of one string.
  struct Matcher {
    explicit Matcher(std::string string);
    // Bytes at the end of the text that are a beginning of the string, after one more byte.
    size_t advance(char byte);
    size_t shorter(size_t length, char byte) const;

    std::string string;
    std::vector<size_t> border;  // [i]: the longest proper beginning that also ends string[0, i)
    size_t matched = 0;
  };

  std::vector<Matcher> matchers_;
  std::string waiting_;
  bool found_ = false;
};

}  // namespace zaya
