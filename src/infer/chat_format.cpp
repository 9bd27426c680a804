#include "infer/chat_format.h"

#include <algorithm>

#include "core/error.h"

namespace zaya {
namespace {

constexpr std::string_view kStartOfTurn = "<start_of_turn>";
constexpr std::string_view kEndOfTurn = "<end_of_turn>";

void append(std::vector<int32_t>& ids, const std::vector<int32_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace

ChatFormat::ChatFormat(const Tokenizer& tokenizer, const SpecialIds& special,
                       const std::string& place)
    : tokenizer_(tokenizer), bos_(special.bos), ends_(special.eos) {
  const auto start = tokenizer.token_id(kStartOfTurn), end = tokenizer.token_id(kEndOfTurn);
  if (!start || !end) {
    fail(
        "{}: chat writes turns with {} and {}, and the tokenizer ({}) has no {}: wanted a model "
        "made for conversations; `zaya generate` runs this one",
        place, kStartOfTurn, kEndOfTurn, tokenizer.name(),
        !start && !end ? "such tokens"
        : !start       ? kStartOfTurn
                       : kEndOfTurn);
  }
  start_of_turn_ = *start;
  end_of_turn_ = *end;
  ends_.insert(ends_.end(), {end_of_turn_, start_of_turn_});
}

std::vector<int32_t> ChatFormat::begin() const {
  return bos_ ? std::vector<int32_t>{*bos_} : std::vector<int32_t>{};
}

std::vector<int32_t> ChatFormat::user_turn(std::string_view text, std::string_view system) const {
  std::string content = "user\n";
  if (const std::string_view said = trimmed(system); !said.empty())
    content.append(said).append("\n\n");
  content.append(trimmed(text));
  std::vector<int32_t> ids{start_of_turn_};
  append(ids, tokenizer_.encode_literal(content));
  append(ids, answer_end());
  ids.push_back(start_of_turn_);
  append(ids, tokenizer_.encode_literal("model\n"));
  return ids;
}

std::vector<int32_t> ChatFormat::answer(std::string_view text) const {
  std::vector<int32_t> ids = tokenizer_.encode_literal(trimmed(text));
  append(ids, answer_end());
  return ids;
}

std::vector<int32_t> ChatFormat::answer_end() const {
  std::vector<int32_t> ids{end_of_turn_};
  append(ids, tokenizer_.encode_literal("\n"));
  return ids;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::string template_warning(const TokenizerConfig& config) {
  const std::string& text = config.chat_template;
  if (text.empty()) return {};
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  // A template is a program; its marks tell which format it writes.
  std::string missing;
  for (const std::string_view mark : {kStartOfTurn, kEndOfTurn})
    if (!has(mark)) missing += (missing.empty() ? "" : " and ") + std::string(mark);
  if (missing.empty() && !has("<|") && !has("[INST]")) return {};
  return fmt::format(
      "{} writes turns in another way ({}), and chat in Gemma's, <start_of_turn>user ... "
      "<end_of_turn>: answers may be poor",
      config.chat_template_place,
      missing.empty() ? "it has marks of other formats" : "without " + missing);
}

}  // namespace zaya
