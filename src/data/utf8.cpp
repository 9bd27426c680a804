#include "data/utf8.h"

#include <cstdint>

namespace zaya {

namespace {

struct Lead {
  size_t bytes;            // of the whole character, 0 for a byte that begins none
  uint8_t second_minimum;  // the second byte's range, which excludes overlong forms and surrogates
  uint8_t second_maximum;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xc2) return {0, 0, 0};
  if (byte < 0xe0) return {2, 0x80, 0xbf};
  if (byte < 0xf0) {
    return {3, static_cast<uint8_t>(byte == 0xe0 ? 0xa0 : 0x80),
            static_cast<uint8_t>(byte == 0xed ? 0x9f : 0xbf)};
  }
  if (byte < 0xf5) {
    return {4, static_cast<uint8_t>(byte == 0xf0 ? 0x90 : 0x80),
            static_cast<uint8_t>(byte == 0xf4 ? 0x8f : 0xbf)};
  }
  return {0, 0, 0};
}

}  // namespace

Utf8Step utf8_step(std::string_view text) {
  const Lead lead = lead_of(static_cast<uint8_t>(text[0]));
  if (lead.bytes == 0) return {Utf8Step::invalid, 1};
  for (size_t i = 1; i < lead.bytes; ++i) {
    if (i == text.size()) return {Utf8Step::incomplete, i};
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    const uint8_t minimum = i == 1 ? lead.second_minimum : 0x80;
    const uint8_t maximum = i == 1 ? lead.second_maximum : 0xbf;
    if (byte < minimum || byte > maximum) return {Utf8Step::invalid, i};
  }
  return {Utf8Step::character, lead.bytes};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    if (step.kind != Utf8Step::character) return false;
    text.remove_prefix(step.bytes);
  }
  return true;
}

}  // namespace zaya
