#pragma once
// What holds for every tokenizer and every text, whatever file the tokenizer came from.

#include "data/stream_decoder.h"
#include "data/tokenizer.h"
#include "fuzz/support.h"

namespace zaya::fuzz {

// The text with U+FFFD for what is no UTF-8.
inline std::string as_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    out += step.kind == Utf8Step::character ? text.substr(0, step.bytes) : kReplacementCharacter;
    text.remove_prefix(step.bytes);
  }
  return out;
}

inline std::string streamed(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  StreamDecoder decoder(tokenizer, false);
  std::string text;
  for (const int32_t id : ids) {
    const std::string piece = decoder.push(id);
    FUZZ_CHECK(is_utf8(piece));
    text += piece;
  }
  return text + decoder.finish();
}

inline void check_ids(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  for (const int32_t id : ids) FUZZ_CHECK(id >= 0 && id < tokenizer.vocab_size());
  FUZZ_CHECK(streamed(tokenizer, ids) == as_utf8(tokenizer.decode(ids)));
}

inline void check_text(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<int32_t> ids = tokenizer.encode(text);
  check_ids(tokenizer, ids);
  FUZZ_CHECK(ids == tokenizer.encode(text));  // from caches, this time
  if (tokenizer.exact()) FUZZ_CHECK(tokenizer.decode(ids) == text);
}

inline void check_vocabulary(const Tokenizer& tokenizer) {
  FUZZ_CHECK(tokenizer.vocab_size() > 0);
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) tokenizer.bytes_of(id);
  FUZZ_CHECK(!accepts([&] { tokenizer.bytes_of(tokenizer.vocab_size()); }));
  for (const std::optional<int32_t> id : {tokenizer.bos(), tokenizer.eos()})
    FUZZ_CHECK(!id || (*id >= 0 && *id < tokenizer.vocab_size()));
  check_printable(tokenizer.description());
}

// Every kind of thing a text can hold.
inline constexpr std::string_view kSample =
    "Some words, some  words\n\n\tand 1234567 x's\xe2\x96\x81\xc3\xa9\xe4\xbd\xa0\xe5\xa5\xbd"
    "\xf0\x9f\x98\x80 e\xcc\x81 \xff\xc3 \xed\xa0\x80\r\n <s> ";

inline void check_tokenizer(const Tokenizer& tokenizer, std::string_view text) {
  check_vocabulary(tokenizer);
  check_text(tokenizer, kSample);
  check_text(tokenizer, text);
}

}  // namespace zaya::fuzz
