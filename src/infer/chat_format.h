#pragma once
// A conversation as tokens, in Gemma's turn format:
//
//   <bos><start_of_turn>user
//   {system text, and a blank line}{text}<end_of_turn>
//   <start_of_turn>model
//   {answer}<end_of_turn>
//
// The turn marks are tokens; whatever people write is ordinary text, even "<end_of_turn>".

#include <string>
#include <string_view>

#include "infer/generation_config.h"

namespace zaya {

class ChatFormat {
 public:
  // Error that begins with `place` and names the turn tokens that the tokenizer, which must outlive
  // the format, does not have.
  ChatFormat(const Tokenizer& tokenizer, const SpecialIds& special, const std::string& place);

  // The first token of a conversation, if it has one.
  std::vector<int32_t> begin() const;
  // What a person says, up to where the model's answer begins. White space around the text is left
  // out. system: empty except in the first turn.
  std::vector<int32_t> user_turn(std::string_view text, std::string_view system = {}) const;
  // A whole turn of the model that somebody else wrote down, without what began it in user_turn.
  std::vector<int32_t> answer(std::string_view text) const;
  // What closes an answer.
  std::vector<int32_t> answer_end() const;
  // Tokens that end an answer: end of turn, a turn begun by the model itself, and eos.
  const std::vector<int32_t>& ends() const { return ends_; }

 private:
  const Tokenizer& tokenizer_;
  std::optional<int32_t> bos_;
  int32_t start_of_turn_, end_of_turn_;
  std::vector<int32_t> ends_;
};

// The text without white space at its ends.
std::string_view trimmed(std::string_view text);

// A sentence about the folder's chat template when it writes turns in another way; empty when it
// does not, or there is none.
std::string template_warning(const TokenizerConfig& config);

}  // namespace zaya
