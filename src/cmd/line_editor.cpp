#include "cmd/line_editor.h"

#include <fmt/format.h>
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstring>
#include <cwchar>
#include <utility>

#include "cmd/interrupt.h"
#include "core/error.h"
#include "data/utf8.h"

namespace zaya {
namespace {

// Reads from standard input, or is interrupted: -1 and EINTR. 0 at the end.
ssize_t read_input(char* to, size_t size) {
  while (true) {
    if (interrupted()) return errno = EINTR, -1;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, -1) < 0) {
      if (errno == EINTR) continue;
      return -1;
    }
    const ssize_t count = ::read(STDIN_FILENO, to, size);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    return count;
  }
}

class PipeReader final : public LineReader {
 public:
  InputLine read(const std::string&) override {
    while (true) {
      const size_t newline = buffer_.find('\n');
      if (newline != std::string::npos || (ended_ && !buffer_.empty())) return take(newline);
      if (ended_) return {InputLine::end, {}};
      char bytes[4096];
      const ssize_t count = read_input(bytes, sizeof bytes);
      if (count < 0 && errno != EINTR) fail_errno("cannot read", "standard input");
      if (count < 0) {
        forget_interrupts();
        return {InputLine::interrupted, {}, !std::exchange(buffer_, {}).empty()};
      }
      ended_ = count == 0;
      buffer_.append(bytes, static_cast<size_t>(count));
    }
  }
  void remember(const std::string&) override {}
  bool is_terminal() const override { return false; }

 private:
  InputLine take(size_t newline) {
    InputLine line{InputLine::text, buffer_.substr(0, newline)};
    buffer_.erase(0, newline == std::string::npos ? newline : newline + 1);
    if (line.line.ends_with('\r')) line.line.pop_back();
    return line;
  }

  std::string buffer_;
  bool ended_ = false;
};

// libedit shows and counts characters by the locale; only its notion of characters is taken over.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

class TerminalReader final : public LineReader {
 public:
  TerminalReader() {
    use_utf8();
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, 1000);
    history(history_, &event, H_SETUNIQUE, 1);
    editor_ = el_init("zaya", stdin, stdout, stderr);
    if (!editor_) fail("cannot edit lines in this terminal");
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_PROMPT, &TerminalReader::prompt_of);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_GETCFN, &TerminalReader::read_character);
    el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_set(editor_, EL_BIND, "\\e[3~", "ed-delete-next-char", nullptr);
    el_set(editor_, EL_BIND, "\\e[1;5C", "em-next-word", nullptr);
    el_set(editor_, EL_BIND, "\\e[1;5D", "ed-prev-word", nullptr);
    el_source(editor_, nullptr);  // ~/.editrc
  }
  ~TerminalReader() override {
    el_end(editor_);
    history_end(history_);
  }
  TerminalReader(const TerminalReader&) = delete;

  InputLine read(const std::string& prompt) override {
    prompt_ = prompt;
    int count = 0;
    const char* const line = el_gets(editor_, &count);
    if (line && count > 0 && !interrupted()) {
      std::string text(line, static_cast<size_t>(count));
      while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
      return {InputLine::text, std::move(text)};
    }
    if (!interrupted()) return {InputLine::end, {}};
    const LineInfo* const info = el_line(editor_);
    const bool typed = info->lastchar > info->buffer;
    forget_interrupts();
    el_reset(editor_);
    return {InputLine::interrupted, {}, typed};
  }
  void remember(const std::string& line) override {
    HistEvent event;
    history(history_, &event, H_ENTER, line.c_str());
  }
  bool is_terminal() const override { return true; }

 private:
  static TerminalReader& of(EditLine* editor) {
    TerminalReader* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return *self;
  }
  static char* prompt_of(EditLine* editor) { return of(editor).prompt_.data(); }
  static int read_character(EditLine* editor, wchar_t* to) { return of(editor).next(to); }
  // One character of standard input; U+FFFD for bytes that are none. 0 at the end, -1 and EINTR.
  int next(wchar_t* to) {
    while (true) {
      const Utf8Step step = bytes_.empty() ? Utf8Step{Utf8Step::incomplete, 0} : utf8_step(bytes_);
      if (step.kind != Utf8Step::incomplete) {
        std::mbstate_t state{};
        if (step.kind == Utf8Step::invalid ||
            std::mbrtowc(to, bytes_.data(), step.bytes, &state) != step.bytes)
          *to = bytes_[0] == 0 ? L'\0' : L'\ufffd';
        bytes_.erase(0, step.bytes);
        return 1;
      }
      char byte;
      const ssize_t count = read_input(&byte, 1);
      if (count <= 0) return static_cast<int>(count);
      bytes_ += byte;
    }
  }

  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
  std::string prompt_;
  std::string bytes_;  // read, and no whole character yet
};

}  // namespace

std::unique_ptr<LineReader> make_line_reader() {
  if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) return std::make_unique<TerminalReader>();
  return std::make_unique<PipeReader>();
}

}  // namespace zaya
