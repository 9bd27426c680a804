#pragma once
// The steps that a decoder of tokenizer.json is made of. Each gets strings and passes strings on,
// as soon as it can.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace zaya {

class HfDecoderStage {
 public:
  using Next = std::function<void(std::string_view)>;
  virtual ~HfDecoderStage() = default;
  virtual void push(std::string_view token, const Next& next) = 0;
  // Passes on what waits. What is pushed afterwards continues the same text.
  virtual void finish(const Next&) {}
};

// `fused` stages get the parts of one string instead of tokens.
std::unique_ptr<HfDecoderStage> replace_stage(std::string pattern, std::string content, bool fused);
// Tokens like <0x0A> to characters. A run of them that is no UTF-8 becomes U+FFFD for each, so a
// run is passed on when it ends.
std::unique_ptr<HfDecoderStage> byte_fallback_stage();
std::unique_ptr<HfDecoderStage> byte_level_stage();
// The same two, passing on each byte as it is.
std::unique_ptr<HfDecoderStage> raw_byte_fallback_stage();
std::unique_ptr<HfDecoderStage> raw_byte_level_stage();
// Removes up to `start` times the character in front and up to `stop` times at the end, of each
// token, or of the one string.
std::unique_ptr<HfDecoderStage> strip_tokens_stage(std::string character, int64_t start,
                                                   int64_t stop);
std::unique_ptr<HfDecoderStage> strip_text_stage(std::string character, int64_t start,
                                                 int64_t stop);
// The mark becomes a space, and with `drop_first` nothing in the first token.
std::unique_ptr<HfDecoderStage> metaspace_stage(std::string mark, bool drop_first);
// The suffix becomes a space, and nothing in the last token.
std::unique_ptr<HfDecoderStage> suffix_stage(std::string suffix);
// A space between tokens.
std::unique_ptr<HfDecoderStage> join_stage(bool continues);

}  // namespace zaya
