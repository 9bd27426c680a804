#pragma once
// Bytes, bos and eos, and the marks of chat turns, for tests of conversations.

#include "data/tokenizer.h"

namespace zaya::test {

class TurnTokenizer final : public Tokenizer {
 public:
  static constexpr int32_t kBos = 256, kEos = 257, kStart = 258, kEnd = 259;

  TurnTokenizer() {
    for (int byte = 0; byte < 256; ++byte) bytes_.emplace_back(1, static_cast<char>(byte));
    bytes_.resize(260);
  }
  // The marks in a text are tokens here; in encode_literal they are text.
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    while (!text.empty()) {
      const auto mark = text.starts_with("<start_of_turn>") ? token_id(text.substr(0, 15))
                        : text.starts_with("<end_of_turn>") ? token_id(text.substr(0, 13))
                                                            : std::nullopt;
      ids.push_back(mark ? *mark : static_cast<uint8_t>(text[0]));
      text.remove_prefix(!mark ? 1 : *mark == kStart ? 15 : 13);
    }
    return ids;
  }
  std::vector<int32_t> encode_literal(std::string_view text) const override {
    std::vector<int32_t> ids;
    for (const char byte : text) ids.push_back(static_cast<uint8_t>(byte));
    return ids;
  }
  std::optional<int32_t> token_id(std::string_view content) const override {
    if (content == "<start_of_turn>") return kStart;
    if (content == "<end_of_turn>") return kEnd;
    if (content == "<eos>") return kEos;
    return {};
  }
  int32_t vocab_size() const override { return 260; }
  std::optional<int32_t> bos() const override { return kBos; }
  std::optional<int32_t> eos() const override { return kEos; }
  std::string name() const override { return "turns"; }
  bool exact() const override { return true; }
  std::string file_name() const override { return "none"; }
  const std::string& file_bytes() const override { return file_; }

 private:
  std::string file_;
};

}  // namespace zaya::test
