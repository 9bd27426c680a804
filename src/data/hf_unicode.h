#pragma once
// What tokenizer.json needs to know about characters. Texts here are well-formed UTF-8: whatever
// comes from outside goes through well_formed() first.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace zaya {

// The text, with each ill-formed part (Unicode's maximal subparts) replaced by U+FFFD.
std::string well_formed(std::string_view text);

// The character that begins at text[at]; moves `at` behind it.
inline char32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return at += 1, lead;
  const auto tail = [&](size_t i) { return static_cast<char32_t>(byte(i) & 0x3f); };
  char32_t c = 0;
  if (lead < 0xe0) {
    c = (lead & 0x1fu) << 6 | tail(1);
    at += 2;
  } else if (lead < 0xf0) {
    c = (lead & 0x0fu) << 12 | tail(1) << 6 | tail(2);
    at += 3;
  } else {
    c = (lead & 0x07u) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3);
    at += 4;
  }
  return c;
}

// Where the character that ends at `end` begins.
size_t previous_character(std::string_view text, size_t end);

void append_character(std::string& text, char32_t c);
std::string to_utf8(char32_t c);

bool is_white_space(char32_t c);  // the property White_Space
bool is_word(char32_t c);  // \w of UTS 18: alphabetic, mark, decimal number, connector, joiner
bool is_punctuation(char32_t c);  // ASCII's punctuation and symbols, and the categories P
bool is_numeric(char32_t c);      // the categories N
bool is_mark(char32_t c);         // the categories M

enum class NormalForm { nfc, nfd, nfkc, nfkd };
std::string normalized(std::string_view text, NormalForm form);
std::string lowercase(std::string_view text);

// GPT-2's alphabet: a visible character for each byte.
const std::array<char32_t, 256>& byte_characters();
// The byte a character of that alphabet stands for, or -1.
int byte_of_character(char32_t c);
// Each byte of the text as its character.
std::string to_byte_characters(std::string_view text);

}  // namespace zaya
