#include "data/hf_decoder_stages.h"

#include <optional>
#include <utility>

#include "data/hf_pattern.h"
#include "data/hf_unicode.h"
#include "data/utf8.h"

namespace zaya {
namespace {

class ReplaceInTokens final : public HfDecoderStage {
 public:
  ReplaceInTokens(std::string pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void push(std::string_view token, const Next& next) override {
    next(pattern_.replaced(token, content_));
  }

 private:
  HfPattern pattern_;
  std::string content_;
};

// Keeps back the end of the text that may be the beginning of the pattern.
class ReplaceInText final : public HfDecoderStage {
 public:
  ReplaceInText(std::string pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void push(std::string_view part, const Next& next) override {
    waiting_ += part;
    size_t done = 0;
    for (size_t at = waiting_.find(pattern_); at != std::string::npos;
         at = waiting_.find(pattern_, done)) {
      next(std::string_view(waiting_).substr(done, at - done));
      next(content_);
      done = at + pattern_.size();
    }
    const std::string_view rest = std::string_view(waiting_).substr(done);
    size_t kept = std::min(rest.size(), pattern_.size() - 1);
    while (!std::string_view(pattern_).starts_with(rest.substr(rest.size() - kept))) --kept;
    next(rest.substr(0, rest.size() - kept));
    waiting_.erase(0, waiting_.size() - kept);
  }
  void finish(const Next& next) override {
    next(waiting_);
    waiting_.clear();
  }

 private:
  std::string pattern_;
  std::string content_;
  std::string waiting_;
};

// The byte of a token like <0x0A>.
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f') return (c | 32) - 'a' + 10;
    return -1;
  };
  // Rust reads "+A" as a number too.
  const int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

class ByteFallback final : public HfDecoderStage {
 public:
  void push(std::string_view token, const Next& next) override {
    if (const auto byte = byte_of(token)) {
      run_.push_back(*byte);
      return;
    }
    finish(next);
    next(token);
  }
  void finish(const Next& next) override {
    if (is_utf8(run_)) {
      if (!run_.empty()) next(run_);
    } else {
      for (size_t i = 0; i < run_.size(); ++i) next(kReplacementCharacter);
    }
    run_.clear();
  }

 private:
  std::string run_;
};

class RawByteFallback final : public HfDecoderStage {
 public:
  void push(std::string_view token, const Next& next) override {
    const auto byte = byte_of(token);
    next(byte ? std::string_view(&*byte, 1) : token);
  }
};

// The bytes that the characters of a token stand for; its own where one stands for none.
std::string level_bytes(std::string_view token) {
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    const int byte = byte_of_character(next_character(token, at));
    if (byte < 0) return std::string(token);
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

class ByteLevel final : public HfDecoderStage {
 public:
  void push(std::string_view token, const Next& next) override {
    waiting_ += level_bytes(token);
    std::string_view rest = waiting_;
    std::string text;
    while (!rest.empty()) {
      const Utf8Step step = utf8_step(rest);
      if (step.kind == Utf8Step::incomplete) break;
      text += step.kind == Utf8Step::character ? rest.substr(0, step.bytes) : kReplacementCharacter;
      rest.remove_prefix(step.bytes);
    }
    waiting_.erase(0, waiting_.size() - rest.size());
    if (!text.empty()) next(text);
  }
  void finish(const Next& next) override {
    if (!waiting_.empty()) next(kReplacementCharacter);
    waiting_.clear();
  }

 private:
  std::string waiting_;
};

class RawByteLevel final : public HfDecoderStage {
 public:
  void push(std::string_view token, const Next& next) override { next(level_bytes(token)); }
};

class StripTokens final : public HfDecoderStage {
 public:
  StripTokens(std::string character, int64_t start, int64_t stop)
      : character_(std::move(character)), start_(start), stop_(stop) {}
  void push(std::string_view token, const Next& next) override {
    for (int64_t i = 0; i < start_ && token.starts_with(character_); ++i)
      token.remove_prefix(character_.size());
    for (int64_t i = 0; i < stop_ && token.ends_with(character_); ++i)
      token.remove_suffix(character_.size());
    next(token);
  }

 private:
  std::string character_;
  int64_t start_;
  int64_t stop_;
};

// Keeps back the characters at the end that the end of the text would remove.
class StripText final : public HfDecoderStage {
 public:
  StripText(std::string character, int64_t start, int64_t stop)
      : character_(std::move(character)), start_(start), stop_(stop) {}

  void push(std::string_view part, const Next& next) override {
    for (; start_ > 0 && part.starts_with(character_); --start_)
      part.remove_prefix(character_.size());
    if (part.empty()) return;
    start_ = 0;
    std::string_view front = part;
    int64_t at_end = 0;
    for (; at_end < stop_ && front.ends_with(character_); ++at_end)
      front.remove_suffix(character_.size());
    if (!front.empty()) {
      pass_kept(kept_, next);
      kept_ = 0;
      next(front);
    }
    kept_ += at_end;
    if (kept_ > stop_) pass_kept(kept_ - stop_, next);
    kept_ = std::min(kept_, stop_);
  }
  void finish(const Next&) override {
    kept_ = 0;
    start_ = 0;
  }

 private:
  void pass_kept(int64_t count, const Next& next) {
    for (int64_t i = 0; i < count; ++i) next(character_);
  }

  std::string character_;
  int64_t start_;
  int64_t stop_;
  int64_t kept_ = 0;
};

class Metaspace final : public HfDecoderStage {
 public:
  Metaspace(std::string mark, bool drop_first) : mark_(std::move(mark)), first_(drop_first) {}
  void push(std::string_view token, const Next& next) override {
    next(mark_.replaced(token, std::exchange(first_, false) ? "" : " "));
  }
  void finish(const Next&) override { first_ = false; }

 private:
  HfPattern mark_;
  bool first_;
};

class Suffix final : public HfDecoderStage {
 public:
  explicit Suffix(std::string suffix) : suffix_(std::move(suffix)) {}
  void push(std::string_view token, const Next& next) override {
    if (last_) next(suffix_.replaced(*last_, " "));
    last_ = token;
  }
  void finish(const Next& next) override {
    if (last_) next(suffix_.replaced(*last_, ""));
    last_.reset();
  }

 private:
  HfPattern suffix_;
  std::optional<std::string> last_;
};

class Join final : public HfDecoderStage {
 public:
  explicit Join(bool continues) : continues_(continues) {}
  void push(std::string_view token, const Next& next) override {
    if (std::exchange(continues_, true)) next(" ");
    next(token);
  }

 private:
  bool continues_;
};

}  // namespace

std::unique_ptr<HfDecoderStage> replace_stage(std::string pattern, std::string content,
                                              bool fused) {
  if (fused) return std::make_unique<ReplaceInText>(std::move(pattern), std::move(content));
  return std::make_unique<ReplaceInTokens>(std::move(pattern), std::move(content));
}
std::unique_ptr<HfDecoderStage> byte_fallback_stage() { return std::make_unique<ByteFallback>(); }
std::unique_ptr<HfDecoderStage> byte_level_stage() { return std::make_unique<ByteLevel>(); }
std::unique_ptr<HfDecoderStage> raw_byte_fallback_stage() {
  return std::make_unique<RawByteFallback>();
}
std::unique_ptr<HfDecoderStage> raw_byte_level_stage() { return std::make_unique<RawByteLevel>(); }
std::unique_ptr<HfDecoderStage> strip_tokens_stage(std::string character, int64_t start,
                                                   int64_t stop) {
  return std::make_unique<StripTokens>(std::move(character), start, stop);
}
std::unique_ptr<HfDecoderStage> strip_text_stage(std::string character, int64_t start,
                                                 int64_t stop) {
  return std::make_unique<StripText>(std::move(character), start, stop);
}
std::unique_ptr<HfDecoderStage> metaspace_stage(std::string mark, bool drop_first) {
  return std::make_unique<Metaspace>(std::move(mark), drop_first);
}
std::unique_ptr<HfDecoderStage> suffix_stage(std::string suffix) {
  return std::make_unique<Suffix>(std::move(suffix));
}
std::unique_ptr<HfDecoderStage> join_stage(bool continues) {
  return std::make_unique<Join>(continues);
}

}  // namespace zaya
