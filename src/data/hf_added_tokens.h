#pragma once
// The "added_tokens" of tokenizer.json: contents that are found in a text before anything else is
// done with it.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/hf_file.h"
#include "data/hf_normalizer.h"
#include "data/hf_vocabulary.h"

namespace zaya {

struct HfAddedToken {
  std::string content;
  std::string decoded;  // what the decoder gets: the normalised content, where that is looked for
  int32_t id = 0;
  bool single_word = false;  // no word character may touch it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;
  bool normalized = true;  // looked for in the normalised text
  bool special = false;
};

// A part of a text: an added token, or (id -1) text between two of them.
struct HfSection {
  size_t begin;
  size_t end;
  int32_t id;
};

// Finds some of the added tokens: at each place the longest, from left to right.
class HfTokenFinder {
 public:
  // `contents` are the strings to look for, one for each token; the tokens must outlive it.
  HfTokenFinder() = default;
  HfTokenFinder(std::vector<const HfAddedToken*> tokens, std::vector<std::string> contents);

  bool empty() const { return entries_.empty(); }
  // With `literal`, special tokens stay part of the text around them.
  std::vector<HfSection> find(std::string_view text, bool literal) const;

 private:
  struct Entry {
    std::string content;
    const HfAddedToken* token;
  };
  // The longest entry that the text at `at` begins with.
  const Entry* longest_at(std::string_view text, size_t at) const;

  std::vector<Entry> entries_;  // sorted by content
  // The entries that begin with each byte: from .first up to .second.
  std::array<std::pair<uint32_t, uint32_t>, 256> by_first_byte_{};
};

class HfAddedTokens {
 public:
  static constexpr size_t kMaxContent = 1024;

  // Error for an empty or very long content, and for ids and contents that do not go together with
  // the vocabulary or come twice.
  HfAddedTokens(const HfFile& file, const HfVocabulary& vocabulary, const HfNormalizer& normalizer);
  HfAddedTokens(const HfAddedTokens&) = delete;

  const std::vector<HfAddedToken>& tokens() const { return tokens_; }
  const HfAddedToken* find(std::string_view content) const;
  // Those looked for in the text as it came, and those looked for in the normalised text.
  const HfTokenFinder& plain() const { return plain_; }
  const HfTokenFinder& normalized() const { return normalized_; }

 private:
  void check(const HfAddedToken& token, const std::string& place, const HfVocabulary& vocabulary);

  std::vector<HfAddedToken> tokens_;
  std::unordered_map<std::string_view, const HfAddedToken*> by_content_;
  HfTokenFinder plain_;
  HfTokenFinder normalized_;
};

}  // namespace zaya
