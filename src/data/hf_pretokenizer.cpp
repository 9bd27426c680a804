#include "data/hf_pretokenizer.h"

#include "core/error.h"
#include "data/hf_pattern.h"
#include "data/hf_split.h"
#include "data/hf_unicode.h"

namespace zaya {
namespace {

// GPT-2's own pattern.
constexpr char kByteLevelPattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

using Step = std::function<void(Pieces&)>;

Step split_step(FindParts find, SplitBehavior behavior, bool invert = false) {
  return [find = std::move(find), behavior, invert](Pieces& all) {
    std::vector<Pieces::Piece> cut;
    std::vector<SplitPart> parts;
    for (const Pieces::Piece& piece : all.pieces) {
      parts.clear();
      find(all.view(piece), parts);
      for (SplitPart& part : parts) part.match = part.match != invert;
      join_parts(parts, behavior);
      for (const SplitPart& part : parts) {
        if (part.begin == part.end) continue;
        cut.push_back(
            {piece.begin + part.begin, piece.begin + part.end, piece.first && part.begin == 0});
      }
    }
    all.pieces = std::move(cut);
  };
}

// Rewrites each piece.
Step rewrite_step(std::function<std::string(std::string_view, bool first)> rewrite) {
  return [rewrite = std::move(rewrite)](Pieces& all) {
    std::string text;
    text.reserve(all.text.size() + all.pieces.size());
    for (Pieces::Piece& piece : all.pieces) {
      const size_t begin = text.size();
      text += rewrite(all.view(piece), piece.first);
      piece.begin = begin;
      piece.end = text.size();
    }
    all.text = std::move(text);
    std::erase_if(all.pieces, [](const Pieces::Piece& piece) { return piece.begin == piece.end; });
  };
}

FindParts parts_of(HfPattern pattern) {
  return parts_of_matches([pattern = std::move(pattern)](std::string_view text, const auto& found) {
    pattern.each_match(text, found);
  });
}

bool is_delimiter_space(char32_t c) { return is_white_space(c); }

// \w+|[^\w\s]+, white space dropped.
void parts_of_words(std::string_view text, std::vector<SplitPart>& parts) {
  int previous = -1;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = next_character(text, at);
    const int kind = is_word(c) ? 0 : is_white_space(c) ? 1 : 2;
    if (kind == previous) {
      parts.back().end = at;
    } else {
      parts.push_back({begin, at, kind == 1});
    }
    previous = kind;
  }
}

// The only character of a member.
std::string one_character(const JsonObject& object, const char* key) {
  const std::string text = object.string(key);
  size_t at = 0;
  if (text.empty() || (next_character(text, at), at != text.size()))
    object.fail_wanted(key, "one character");
  return text;
}

std::string prepend_scheme(const JsonObject& object) {
  const std::string fallback = object.boolean_or("add_prefix_space", true) ? "always" : "never";
  std::string scheme = object.string_or("prepend_scheme", fallback);
  if (scheme != "always" && scheme != "first" && scheme != "never")
    object.fail_wanted("prepend_scheme", "always, first or never");
  return scheme;
}

void add_metaspace(const JsonObject& object, std::vector<Step>& steps) {
  const std::string mark = one_character(object, "replacement");
  const std::string scheme = prepend_scheme(object);
  const HfPattern space(" ");
  steps.push_back(rewrite_step([=](std::string_view text, bool first) {
    std::string out = space.replaced(text, mark);
    const bool wanted = scheme == "always" || (scheme == "first" && first);
    if (wanted && !out.starts_with(mark)) out.insert(0, mark);
    return out;
  }));
  if (object.boolean_or("split", true))
    steps.push_back(split_step(parts_of(HfPattern(mark)), SplitBehavior::merged_with_next));
}

void add_byte_level(const JsonObject& object, std::vector<Step>& steps) {
  if (object.boolean_or("add_prefix_space", true)) {
    steps.push_back(rewrite_step([](std::string_view text, bool) {
      std::string out(text.starts_with(' ') ? 0 : 1, ' ');
      return out += text;
    }));
  }
  if (object.boolean_or("use_regex", true)) {
    steps.push_back(split_step(parts_of(HfPattern(Regex(kByteLevelPattern, "ByteLevel"))),
                               SplitBehavior::isolated));
  }
  steps.push_back(rewrite_step([](auto text, bool) { return to_byte_characters(text); }));
}

void add_step(const JsonObject& object, const std::string& place, std::vector<Step>& steps) {
  const std::string type = object.string("type");
  const auto split_characters = [&](bool (*is_match)(char32_t), SplitBehavior behavior) {
    steps.push_back(split_step(parts_of_characters(is_match), behavior));
  };
  if (type == "Split") {
    steps.push_back(split_step(parts_of(HfPattern::of(object, place)), split_behavior(object),
                               object.boolean_or("invert", false)));
  } else if (type == "Metaspace") {
    add_metaspace(object, steps);
  } else if (type == "ByteLevel") {
    add_byte_level(object, steps);
  } else if (type == "Whitespace") {
    steps.push_back(split_step(parts_of_words, SplitBehavior::removed));
  } else if (type == "WhitespaceSplit") {
    split_characters(is_delimiter_space, SplitBehavior::removed);
  } else if (type == "BertPreTokenizer") {
    split_characters(is_delimiter_space, SplitBehavior::removed);
    split_characters(is_punctuation, SplitBehavior::isolated);
  } else if (type == "Punctuation") {
    split_characters(is_punctuation,
                     object.has("behavior") ? split_behavior(object) : SplitBehavior::isolated);
  } else if (type == "Digits") {
    split_characters(is_numeric, object.boolean_or("individual_digits", false)
                                     ? SplitBehavior::isolated
                                     : SplitBehavior::contiguous);
  } else if (type == "CharDelimiterSplit") {
    steps.push_back(split_step(parts_of(HfPattern(one_character(object, "delimiter"))),
                               SplitBehavior::removed));
  } else {
    object.fail_wanted("type",
                       "Sequence, Split, Metaspace, ByteLevel, Whitespace, WhitespaceSplit, "
                       "BertPreTokenizer, Punctuation, Digits or CharDelimiterSplit");
  }
}

// How many bytes a step may make of one: a piece of one byte gets a mark in front.
double growth_of(const JsonObject& object) {
  const std::string type = object.string("type");
  if (type == "Metaspace") return 1 + static_cast<double>(object.string("replacement").size());
  if (type == "ByteLevel") return object.boolean_or("add_prefix_space", true) ? 4 : 2;
  return 1;
}

}  // namespace

void HfPreTokenizer::add(const Json& value, const std::string& place) {
  if (value.is_null()) return;
  const JsonObject object(value, place);
  if (object.string("type") != "Sequence") {
    add_step(object, place, steps_);
    growth_.add(growth_of(object), place);
    return;
  }
  size_t i = 0;
  for (const Json& part : object.array("pretokenizers"))
    add(part, fmt::format("{}.pretokenizers[{}]", place, i++));
}

Pieces HfPreTokenizer::apply(std::string text, bool first) const {
  Pieces all;
  all.text = std::move(text);
  if (!all.text.empty()) all.pieces.push_back({0, all.text.size(), first});
  for (const Step& step : steps_) step(all);
  return all;
}

}  // namespace zaya
