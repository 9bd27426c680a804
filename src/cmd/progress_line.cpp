#include "cmd/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace zaya {
namespace {

// On a terminal more often than this only flickers.
constexpr double kTerminalSeconds = 0.1;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A line that wraps could not be rewritten in place.
size_t terminal_width(std::FILE* out) {
  winsize size{};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 120;
  return size.ws_col - 1u;
}

// A run must not end because nobody reads its progress any more, or the disk with its log is full.
void put(std::FILE* out, const std::string& text) {
  std::fputs(text.c_str(), out);
  std::fflush(out);
  std::clearerr(out);
}

std::string tokens_text(int64_t tokens) {
  const auto count = static_cast<double>(tokens);
  if (count < 1e9) return fmt::format("{:.2f} M tokens", count / 1e6);
  return fmt::format("{:.3f} B tokens", count / 1e9);
}

}  // namespace

std::string short_time(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 1e12)));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours == 0) return fmt::format("{}:{:02}", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
}

std::string progress_text(const StepMetrics& m, int64_t total_steps, double seconds_left) {
  std::string text = fmt::format("step {}/{}  {}  loss {:.3f}", m.step, total_steps,
                                 tokens_text(m.tokens), m.loss);
  if (m.bits_per_byte != 0) text += fmt::format("  {:.3f} bits/byte", m.bits_per_byte);
  text += fmt::format("  {:.0f} tokens/s  gradient {:.2f}", m.tokens_per_second, m.grad_norm);
  if (!m.expert_entropy.empty())
    text += fmt::format("  experts {:.2f}",
                        *std::min_element(m.expert_entropy.begin(), m.expert_entropy.end()));
  if (m.skipped_steps > 0) text += fmt::format("  {} skipped", m.skipped_steps);
  if (seconds_left >= 0) text += fmt::format("  {} left", short_time(seconds_left));
  return text;
}

ProgressLine::ProgressLine(std::FILE* out, int64_t total_steps, int64_t total_tokens,
                           double seconds_between)
    : ProgressLine(out, total_steps, total_tokens, seconds_between, steady_seconds,
                   isatty(fileno(out)) == 1) {}

ProgressLine::ProgressLine(std::FILE* out, int64_t total_steps, int64_t total_tokens,
                           double seconds_between, std::function<double()> clock, bool in_place)
    : out_(out),
      total_steps_(total_steps),
      total_tokens_(total_tokens),
      seconds_between_(in_place ? kTerminalSeconds : seconds_between),
      clock_(std::move(clock)),
      in_place_(in_place) {}

ProgressLine::~ProgressLine() {
  if (row_open_) std::fputc('\n', out_);
  std::fflush(out_);
}

void ProgressLine::show(const StepMetrics& m) {
  const bool first = tokens_per_second_ == 0;
  tokens_per_second_ =
      first ? m.tokens_per_second : 0.9 * tokens_per_second_ + 0.1 * m.tokens_per_second;
  if (m.skipped) message(fmt::format("step {} skipped: {}", m.step, m.skip_reason));
  const double now = clock_();
  if (m.step < total_steps_ && now - last_shown_ < seconds_between_) return;
  last_shown_ = now;
  const double left = static_cast<double>(std::max<int64_t>(0, total_tokens_ - m.tokens));
  print(progress_text(m, total_steps_, tokens_per_second_ > 0 ? left / tokens_per_second_ : -1));
}

void ProgressLine::message(const std::string& text) {
  put(out_, fmt::format("{}{}\n", row_open_ ? "\r\x1b[K" : "", text));
  row_open_ = false;
}

void ProgressLine::print(const std::string& text) {
  row_open_ = in_place_;
  put(out_,
      in_place_ ? fmt::format("\r{}\x1b[K", text.substr(0, terminal_width(out_))) : text + "\n");
}

}  // namespace zaya
