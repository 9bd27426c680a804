#pragma once
// The line a person watches while a model trains: rewritten in place on a terminal, printed every
// few seconds where standard output goes to a file.

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "train/metrics.h"

namespace zaya {

// "step 120/450  0.492 M tokens  loss 4.213  2.710 bits/byte  8123 tokens/s  gradient 0.83
//  experts 0.97  1:12 left". A negative seconds_left is not known yet and not shown.
std::string progress_text(const StepMetrics& metrics, int64_t total_steps, double seconds_left);
// 72 as "1:12", 3700 as "1:01:40".
std::string short_time(double seconds);

class ProgressLine {
 public:
  // Looks at `out` to learn whether it is a terminal. total_tokens: of the run, for the time left.
  ProgressLine(std::FILE* out, int64_t total_steps, int64_t total_tokens, double seconds_between);
  // For tests: a clock in seconds, and whether to rewrite in place.
  ProgressLine(std::FILE* out, int64_t total_steps, int64_t total_tokens, double seconds_between,
               std::function<double()> clock, bool in_place);
  ~ProgressLine();

  // Prints the line when it is due. The last step and a skipped one are always due.
  void show(const StepMetrics& metrics);
  // Another line for the person, on a row of its own.
  void message(const std::string& text);

 private:
  void print(const std::string& text);

  std::FILE* out_;
  int64_t total_steps_, total_tokens_;
  double seconds_between_;
  std::function<double()> clock_;
  bool in_place_;
  bool row_open_ = false;
  double last_shown_ = -1e300;
  double tokens_per_second_ = 0;  // smoothed
};

}  // namespace zaya
