#pragma once
// Lines from a person: edited, with a history, in a terminal; as they come, from a pipe or a file.

#include <memory>
#include <string>

namespace zaya {

struct InputLine {
  enum Kind {
    text,
    end,         // of the input: Ctrl-D, or the end of the file
    interrupted  // Ctrl-C: what was typed is dropped
  } kind;
  std::string line;           // without its newline
  bool dropped_text = false;  // interrupted: there was some
};

class LineInput {
 public:
  virtual ~LineInput() = default;
  // Shows the prompt (to people) and waits for a line. Ctrl-C counts once note_interrupts() has
  // been called; it is forgotten again here.
  virtual InputLine read(const std::string& prompt) = 0;
  // For the arrow keys and Ctrl-R, until the program ends.
  virtual void remember(const std::string& line) = 0;
  // Whether a person reads along.
  virtual bool is_terminal() const = 0;
};

// An editor when standard input and output are a terminal.
std::unique_ptr<LineInput> make_line_input();

}  // namespace zaya
