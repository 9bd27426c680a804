#pragma once
// metrics.jsonl: one JSON object a step, flushed, so that whoever watches the file sees every step
// and a killed run loses at most the line it was writing.

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "train/tensorboard.h"

namespace zaya {

struct StepMetrics {
  int64_t step = 0;    // steps done: the first step of a run writes 1
  int64_t tokens = 0;  // tokens of the run so far, this step included
  double loss = 0;
  double bits_per_byte = 0;  // 0: not known, not written
  double grad_norm = 0;
  double learning_rate = 0;  // of Muon
  double tokens_per_second = 0;
  std::vector<double> expert_entropy;  // load_entropy (optim/balancing.h) of each block
  bool skipped = false;
  int64_t skipped_steps = 0;             // of the run so far
  std::string skip_reason;               // where this step was skipped
  std::vector<int64_t> skipped_samples;  // the sample ids that fed it
};

struct ValidationMetrics {
  int64_t step = 0;
  int64_t tokens = 0;
  double loss = 0;
  double bits_per_byte = 0;
  // By source, where there are several.
  std::map<std::string, double> loss_by_source;
  std::map<std::string, double> bits_per_byte_by_source;
};

// One line, without its newline. A number that is not finite is written as null: JSON has none.
std::string step_line(const StepMetrics& metrics);
std::string validation_line(const ValidationMetrics& metrics);

// Rewrites a metrics file, whole or not at all, so that only whole lines of steps <= step remain. A
// file that is not there is left so.
void truncate_metrics_after(const std::string& path, int64_t step);

// Writes DIR/metrics.jsonl and, where asked, TensorBoard event files in DIR.
class MetricsWriter {
 public:
  // resumed_step: 0 starts anew; otherwise what came after that step is dropped first.
  MetricsWriter(const std::string& directory, int64_t resumed_step, bool tensorboard);

  void write(const StepMetrics& metrics);
  void write(const ValidationMetrics& metrics);

 private:
  void line(const std::string& text);

  std::string path_;
  std::ofstream file_;
  std::unique_ptr<EventWriter> events_;
};

}  // namespace zaya
