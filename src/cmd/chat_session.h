#pragma once
// A conversation at a terminal or over a pipe: messages, and commands that begin with a slash.

#include "cmd/line_editor.h"
#include "cmd/text_model.h"
#include "infer/conversation.h"

namespace zaya {

class ChatSession {
 public:
  ChatSession(Conversation& conversation, LineInput& input);

  // Until /quit or the end of the input.
  void run();
  const TextFigures& figures() const { return figures_; }

 private:
  // A message, which may take several lines; none at the end of the input.
  std::optional<std::string> read_message();
  std::optional<std::string> read_lines(std::string first, bool quoted);
  // False for /quit.
  bool handle(const std::string& message);
  bool command(const std::string& line);
  void answer(const std::string& text);
  void note(const std::string& text) const;

  Conversation& conversation_;
  LineInput& input_;
  TextFigures figures_;
};

// One line {"messages": [{"role": ..., "content": ...}, ...]}, as data to fine-tune on has.
void save_messages(const std::vector<Message>& messages, const std::string& file);
std::vector<Message> read_messages(const std::string& file);

}  // namespace zaya
