#pragma once
// The "decoder" of tokenizer.json: the contents of tokens to text, one token at a time.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "data/hf_growth.h"

namespace zaya {

class HfDecoderStage;

// A text on its way out of a decoder.
class HfDecoding {
 public:
  explicit HfDecoding(std::vector<std::unique_ptr<HfDecoderStage>> stages);
  HfDecoding(HfDecoding&&) noexcept;
  ~HfDecoding();

  // Appends the text that this token makes certain.
  void push(std::string_view content, std::string& text);
  // Appends what waited for more. What is pushed then continues the text.
  void finish(std::string& text);

 private:
  void pass(size_t stage, std::string_view part, std::string& text);

  std::vector<std::unique_ptr<HfDecoderStage>> stages_;
};

class HfDecoder {
 public:
  // `place` begins every error. Without a decoder tokens are joined with spaces, as HF does.
  HfDecoder(const Json& value, const std::string& place);

  // `continues`: there is text before the first token.
  HfDecoding start(bool continues) const;
  // The bytes that tokens stand for, before anything is made of bytes that are no UTF-8.
  HfDecoding start_bytes() const;

 private:
  enum class Kind { replace, byte_fallback, fuse, strip, byte_level, metaspace, suffix, join };
  struct Stage {
    Kind kind;
    bool fused = false;  // what comes in are parts of one string
    std::string pattern = {};
    std::string content = {};
    int64_t start = 0;
    int64_t stop = 0;
  };
  void add(const Json& value, const std::string& place);
  Stage read(const JsonObject& object, const std::string& place) const;
  HfDecoding build(bool continues, bool bytes) const;

  std::vector<Stage> stages_;
  HfGrowth growth_;
  bool fused_ = false;
};

}  // namespace zaya
