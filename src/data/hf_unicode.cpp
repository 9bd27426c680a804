#include "data/hf_unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "data/utf8.h"

namespace zaya {
namespace {

utf8proc_category_t category_of(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<int8_t>(c) >= 0; });
}

// Circled and squared Latin letters: alphabetic, though their category is "other symbol".
bool is_enclosed_letter(char32_t c) {
  return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
         (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

using CodePoints = std::vector<utf8proc_int32_t>;

void append_decomposed(CodePoints& points, char32_t c, utf8proc_option_t options) {
  constexpr size_t kLongest = 32;  // U+FDFA becomes 18 characters, no other more
  const size_t size = points.size();
  points.resize(size + kLongest);
  int last_class = 0;
  const auto wrote = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), &points[size],
                                             kLongest, options, &last_class);
  ZAYA_REQUIRE(wrote >= 0 && wrote <= static_cast<utf8proc_ssize_t>(kLongest));
  points.resize(size + static_cast<size_t>(wrote));
}

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

// Sorts each run of combining marks by their class. The library's own loop takes quadratic time on
// a long run.
void reorder_marks(CodePoints& points) {
  auto at = points.begin();
  while (at != points.end()) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto end = std::find_if(at, points.end(), [](auto c) { return combining_class(c) == 0; });
    std::stable_sort(at, end,
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    at = end;
  }
}

}  // namespace

std::string well_formed(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    out += step.kind == Utf8Step::character ? text.substr(0, step.bytes) : kReplacementCharacter;
    text.remove_prefix(step.bytes);
  }
  return out;
}

size_t previous_character(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

void append_character(std::string& text, char32_t c) {
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

std::string to_utf8(char32_t c) {
  std::string text;
  append_character(text, c);
  return text;
}

bool is_white_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool is_word(char32_t c) {
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return is_mark(c) || c == 0x200c || c == 0x200d || is_enclosed_letter(c);
  }
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return c > 0x20 && c != 0x7f && !(c >= '0' && c <= '9') &&
           !((c | 32) >= 'a' && (c | 32) <= 'z');
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_numeric(char32_t c) {
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_mark(char32_t c) {
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

std::string normalized(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                      (compatible ? UTF8PROC_COMPAT : 0));
  CodePoints points;
  points.reserve(text.size());
  for (size_t at = 0; at < text.size();)
    append_decomposed(points, next_character(text, at), options);
  reorder_marks(points);
  auto count = static_cast<utf8proc_ssize_t>(points.size());
  if (form == NormalForm::nfc || form == NormalForm::nfkc) {
    const auto compose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    count = utf8proc_normalize_utf32(points.data(), count, compose);
  }
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    append_character(out, static_cast<char32_t>(points[static_cast<size_t>(i)]));
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    if (c == 0x130) {  // the only character whose lower case is always two
      out += "i\xcc\x87";
    } else {
      append_character(out,
                       static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  }
  return out;
}

const std::array<char32_t, 256>& byte_characters() {
  static const auto characters = [] {
    std::array<char32_t, 256> table{};
    char32_t next = 256;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool visible = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
      table[byte] = visible ? byte : next++;
    }
    return table;
  }();
  return characters;
}

int byte_of_character(char32_t c) {
  static const auto bytes = [] {
    std::array<int16_t, 512> table;
    table.fill(-1);
    for (size_t byte = 0; byte < 256; ++byte)
      table[byte_characters()[byte]] = static_cast<int16_t>(byte);
    return table;
  }();
  return c < bytes.size() ? bytes[c] : -1;
}

std::string to_byte_characters(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  for (const char byte : text) append_character(out, byte_characters()[static_cast<uint8_t>(byte)]);
  return out;
}

}  // namespace zaya
