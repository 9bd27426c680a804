#include "cmd/chat_session.h"

#include <fmt/format.h>

#include "cmd/interrupt.h"
#include "core/error.h"

namespace zaya {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr std::string_view kHelp =
    "/system TEXT  start anew under this system text (no TEXT: under none)\n"
    "/reset        start anew\n"
    "/save FILE    write the conversation as a line of JSON\n"
    "/help         this\n"
    "/quit         leave (Ctrl-D does too)\n"
    "A \\ at the end of a line goes on in the next; so do lines between \"\"\" and \"\"\".\n"
    "A message that begins with a slash is written with two. Ctrl-C stops an answer.\n";

}  // namespace

ChatSession::ChatSession(Conversation& conversation, LineInput& input)
    : conversation_(conversation), input_(input) {}

void ChatSession::run() {
  if (input_.is_terminal())
    note(fmt::format("context of {} tokens; /help lists the commands", conversation_.longest()));
  while (const std::optional<std::string> message = read_message())
    if (!handle(*message)) break;
}

// To people; a pipe gets answers only.
void ChatSession::note(const std::string& text) const {
  fmt::print(input_.is_terminal() ? stdout : stderr, "[{}]\n", text);
  std::fflush(stdout);
}

std::optional<std::string> ChatSession::read_message() {
  while (true) {
    InputLine line = input_.read("> ");
    if (line.kind == InputLine::end) {
      if (input_.is_terminal()) fmt::print("\n");
      return {};
    }
    if (line.kind == InputLine::interrupted) {
      if (!input_.is_terminal()) return {};
      fmt::print("\n");
      if (!line.dropped_text) note("Ctrl-D or /quit leaves");
      continue;
    }
    const bool quoted = line.line.starts_with(kQuotes);
    std::optional<std::string> text =
        read_lines(quoted ? line.line.substr(kQuotes.size()) : std::move(line.line), quoted);
    if (text) return text;
  }
}

// The rest of a message that goes on: after a backslash, or up to closing quotes. None when it is
// dropped with Ctrl-C.
std::optional<std::string> ChatSession::read_lines(std::string text, bool quoted) {
  while (true) {
    if (quoted && text.ends_with(kQuotes)) {
      text.resize(text.size() - kQuotes.size());
      break;
    }
    if (!quoted && !text.ends_with('\\')) break;
    if (!quoted) text.pop_back();
    const InputLine line = input_.read("... ");
    if (line.kind == InputLine::interrupted) return fmt::print("\n"), std::nullopt;
    if (line.kind == InputLine::end) break;
    text += '\n' + line.line;
  }
  return text;
}

bool ChatSession::handle(const std::string& message) {
  const std::string text(trimmed(message));
  if (text.empty()) return true;
  if (text.find('\n') == std::string::npos) input_.remember(text);
  if (text[0] != '/') return answer(text), true;
  if (text.starts_with("//")) return answer(text.substr(1)), true;
  try {
    return command(text);
  } catch (const Error& error) {
    fmt::print(stderr, "zaya: {}\n", error.what());
    return true;
  }
}

bool ChatSession::command(const std::string& line) {
  const size_t space = line.find_first_of(" \t\n");
  const std::string name = line.substr(0, space);
  const std::string argument(trimmed(space == std::string::npos ? "" : line.substr(space)));
  if (name == "/quit" || name == "/exit") return false;
  if (name == "/help") {
    fmt::print("{}", kHelp);
    std::fflush(stdout);
  } else if (name == "/reset") {
    conversation_.reset(conversation_.system());
    note("a new conversation");
  } else if (name == "/system") {
    conversation_.reset(argument);
    note(argument.empty() ? "a new conversation, without a system text"
                          : "a new conversation, under this system text");
  } else if (name == "/save") {
    if (argument.empty()) fail("/save: wanted a file to write");
    save_messages(conversation_.messages(), argument);
    note("saved to " + argument);
  } else {
    fail("{}: no such command; /help lists them", name);
  }
  return true;
}

void ChatSession::answer(const std::string& text) {
  const auto show = [](std::string_view piece) {
    fmt::print("{}", piece);
    std::fflush(stdout);
  };
  forget_interrupts();
  Generation done;
  try {
    done = conversation_.say(text, show, interrupted);
  } catch (const DoesNotFit& error) {
    fmt::print(stderr, "zaya: {}\n", error.what());
    return;
  }
  forget_interrupts();
  show("\n");
  figures_.add(done);
  if (done.stopped == Stopped::interrupted && input_.is_terminal()) note("stopped");
  if (done.stopped == Stopped::length && input_.is_terminal()) note("cut at --max-tokens");
  if (done.stopped == Stopped::context)
    note(fmt::format("the context of {} tokens is full: /reset starts anew",
                     conversation_.longest()));
}

}  // namespace zaya
