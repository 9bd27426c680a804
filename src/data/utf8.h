#pragma once
// UTF-8 as tokenizers need it: where the next character ends, and whether bytes may still become
// one. Table 3-7 of the Unicode standard: overlong forms and surrogates are ill-formed.

#include <cstddef>
#include <string_view>

namespace zaya {

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

struct Utf8Step {
  // One well-formed character; bytes that are none and never will be; the beginning of one.
  enum Kind { character, invalid, incomplete } kind;
  size_t bytes;
};

// The step at the start of text, which is not empty.
Utf8Step utf8_step(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace zaya
