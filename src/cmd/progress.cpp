#include "cmd/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace zaya {

namespace {

constexpr int kBarCells = 24;
constexpr double kTerminalSeconds = 0.1;
constexpr double kLineSeconds = 2;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

size_t terminal_width(std::FILE* out) {
  winsize size{};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 100;
  return size.ws_col - 1u;
}

std::string time_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

ProgressBar::ProgressBar(std::FILE* out)
    : out_(out), in_place_(isatty(fileno(out)) == 1), begun_(now()), last_drawn_(begun_) {}

ProgressBar::~ProgressBar() {
  if (row_open_) std::fputc('\n', out_);
  std::fflush(out_);
}

void ProgressBar::update(const std::string& label, double fraction, const std::string& note) {
  const double time = now();
  const bool due = time - last_drawn_ >= (in_place_ ? kTerminalSeconds : kLineSeconds);
  const bool at_once = in_place_ && (label != last_label_ || fraction >= 1);
  if (!due && !at_once) return;
  if (label != last_label_) begun_ = time;
  last_drawn_ = time;
  last_label_ = label;
  const std::string line = text(label, fraction, note, time - begun_);
  if (in_place_) {
    fmt::print(out_, "\r{}\x1b[K", line.substr(0, terminal_width(out_)));
    row_open_ = true;
  } else {
    fmt::print(out_, "{}\n", line);
  }
  std::fflush(out_);
}

std::string ProgressBar::text(const std::string& label, double fraction, const std::string& note,
                              double elapsed) const {
  std::string line = label;
  if (fraction >= 0) {
    const double part = std::min(fraction, 1.0);
    const int full = static_cast<int>(part * kBarCells);
    line += fmt::format(" [{:#<{}}{:.<{}}] {:3.0f}%", "", full, "", kBarCells - full, 100 * part);
    // The first second says too little about the rest.
    if (part < 1 && part > 0 && elapsed > 1) {
      line += fmt::format("  {} left", time_text(elapsed / part * (1 - part)));
    }
  } else {
    line += " ...";
  }
  return note.empty() ? line : line + "  " + note;
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  for (; bytes >= 999.95 && unit < 4; ++unit) bytes /= 1000;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

}  // namespace zaya
