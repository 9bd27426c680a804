#include "data/hf_added_tokens.h"

#include <algorithm>
#include <unordered_set>

#include "core/error.h"
#include "data/hf_unicode.h"

namespace zaya {
namespace {

HfAddedToken read_token(const JsonObject& object) {
  HfAddedToken token;
  token.id = static_cast<int32_t>(object.integer("id", 0, kMaxTokenId));
  token.content = object.string("content");
  if (token.content.empty() || token.content.size() > HfAddedTokens::kMaxContent)
    object.fail_wanted("content", fmt::format("1 to {} bytes", HfAddedTokens::kMaxContent));
  token.single_word = object.boolean_or("single_word", false);
  token.lstrip = object.boolean_or("lstrip", false);
  token.rstrip = object.boolean_or("rstrip", false);
  token.special = object.boolean_or("special", false);
  token.normalized = object.boolean_or("normalized", !token.special);
  return token;
}

bool word_before(std::string_view text, size_t end) {
  if (end == 0) return false;
  size_t at = previous_character(text, end);
  return is_word(next_character(text, at));
}

bool word_after(std::string_view text, size_t begin) {
  return begin < text.size() && is_word(next_character(text, begin));
}

// Where the white space that ends at `end` begins, but no further left than `limit`.
size_t spaces_begin(std::string_view text, size_t end, size_t limit) {
  while (end > limit) {
    const size_t begin = previous_character(text, end);
    size_t at = begin;
    if (!is_white_space(next_character(text, at))) break;
    end = begin;
  }
  return std::max(end, limit);
}

size_t spaces_end(std::string_view text, size_t begin) {
  for (size_t at = begin; at < text.size() && is_white_space(next_character(text, at));) begin = at;
  return begin;
}

}  // namespace

HfTokenFinder::HfTokenFinder(std::vector<const HfAddedToken*> tokens,
                             std::vector<std::string> contents) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!contents[i].empty()) entries_.push_back({std::move(contents[i]), tokens[i]});
  }
  // Of two that normalise alike the first one counts.
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.content < b.content; });
  const auto last =
      std::unique(entries_.begin(), entries_.end(),
                  [](const Entry& a, const Entry& b) { return a.content == b.content; });
  entries_.erase(last, entries_.end());
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    auto& [begin, end] = by_first_byte_[static_cast<uint8_t>(entries_[i].content[0])];
    if (begin == end) begin = i;
    end = i + 1;
  }
}

const HfTokenFinder::Entry* HfTokenFinder::longest_at(std::string_view text, size_t at) const {
  const auto [first, last] = by_first_byte_[static_cast<uint8_t>(text[at])];
  auto begin = entries_.begin() + first, end = entries_.begin() + last;
  const Entry* longest = nullptr;
  // Sorted as they are, the entries that share the first `depth` bytes lie together, the one that
  // has no more bytes in front.
  for (size_t depth = 1; begin != end; ++depth) {
    if (begin->content.size() == depth) longest = &*begin++;
    if (at + depth == text.size()) break;
    const auto byte = static_cast<uint8_t>(text[at + depth]);
    const auto byte_of = [depth](const Entry& entry) {
      return static_cast<uint8_t>(entry.content[depth]);
    };
    begin = std::partition_point(begin, end, [&](const Entry& e) { return byte_of(e) < byte; });
    end = std::partition_point(begin, end, [&](const Entry& e) { return byte_of(e) == byte; });
  }
  return longest;
}

std::vector<HfSection> HfTokenFinder::find(std::string_view text, bool literal) const {
  std::vector<HfSection> sections;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const Entry* entry = longest_at(text, at);
    if (!entry) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + entry->content.size();
    at = end;
    const HfAddedToken& token = *entry->token;
    if (literal && token.special) continue;
    if (token.single_word && (word_before(text, begin) || word_after(text, end))) continue;
    if (token.lstrip) begin = spaces_begin(text, begin, std::min(done, begin));
    if (token.rstrip) end = spaces_end(text, end);
    if (done < begin) sections.push_back({done, begin, -1});
    sections.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) sections.push_back({done, text.size(), -1});
  return sections;
}

HfAddedTokens::HfAddedTokens(const HfFile& file, const HfVocabulary& vocabulary,
                             const HfNormalizer& normalizer) {
  const JsonObject document(file.document, file.place);
  if (document.has("added_tokens")) {
    size_t i = 0;
    for (const Json& value : document.array("added_tokens")) {
      const JsonObject object(value, fmt::format("{}: added_tokens[{}]", file.place, i++));
      tokens_.push_back(read_token(object));
      check(tokens_.back(), object.place(), vocabulary);
    }
  }
  std::unordered_set<int32_t> ids;
  std::vector<const HfAddedToken*> plain, normalized;
  std::vector<std::string> plain_contents, normalized_contents;
  for (HfAddedToken& token : tokens_) {
    if (!ids.insert(token.id).second || !by_content_.emplace(token.content, &token).second)
      fail("{}: added_tokens: wanted each token once, got {} with id {} again", file.place,
           json_quoted(token.content), token.id);
    token.decoded = token.normalized ? normalizer.apply(token.content) : token.content;
    (token.normalized ? normalized : plain).push_back(&token);
    (token.normalized ? normalized_contents : plain_contents).push_back(token.decoded);
  }
  plain_ = HfTokenFinder(std::move(plain), std::move(plain_contents));
  normalized_ = HfTokenFinder(std::move(normalized), std::move(normalized_contents));
}

void HfAddedTokens::check(const HfAddedToken& token, const std::string& place,
                          const HfVocabulary& vocabulary) {
  const auto id = vocabulary.find(token.content);
  if (id && *id != token.id)
    fail("{}: id: wanted {}, which {} has in model.vocab, got {}", place, *id,
         json_quoted(token.content), token.id);
  if (!id && vocabulary.has(token.id))
    fail("{}: content: wanted {}, which has id {} in model.vocab, got {}", place,
         json_quoted(vocabulary.content(token.id)), token.id, json_quoted(token.content));
}

const HfAddedToken* HfAddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(content);
  return found == by_content_.end() ? nullptr : found->second;
}

}  // namespace zaya
