#pragma once
// A bar on standard error for work whose end is known: redrawn in place on a terminal; otherwise a
// plain line now and then, and none at all for work of a second or two.

#include <cstdio>
#include <string>

namespace zaya {

class ProgressBar {
 public:
  explicit ProgressBar(std::FILE* out = stderr);
  // Ends the row when something was drawn.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // fraction: done, 0 to 1; negative when not known. Cheap to call often: only what is due is
  // drawn, at once when the label changes or the fraction is 1.
  void update(const std::string& label, double fraction, const std::string& note = "");

 private:
  std::string text(const std::string& label, double fraction, const std::string& note,
                   double elapsed) const;

  std::FILE* out_;
  bool in_place_;
  double begun_;
  double last_drawn_;
  std::string last_label_;
  bool row_open_ = false;
};

// 1536 as "1.5 kB", 12'000'000 as "12.0 MB".
std::string bytes_text(double bytes);

}  // namespace zaya
