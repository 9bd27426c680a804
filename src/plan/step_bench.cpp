#include "plan/step_bench.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>

#include "backend/cpu/gemm_peak.h"
#include "backend/cpu/instruction_set.h"
#include "backend/cpu/threads.h"
#include "core/random.h"
#include "model/flops.h"
#include "model/zaya.h"
#include "ops/elementwise/elementwise.h"
#include "optim/optimizer.h"
#include "plan/memory_use.h"
#include "train/plan_text.h"

namespace zaya {
namespace {

constexpr int kWarmUpSteps = 2;

// What a step takes besides what is planned, whatever the model: oneDNN's generated code, and
// buffers of threads (tiles of products, pieces of attention). As seen with one and two threads.
constexpr int64_t kLibraryBytes = 24 << 20, kThreadBytes = 8 << 20;

// What grows with the model and the batch: the gradients of a sequence's keys and values under one
// head, on each thread; partial sums of the gradients of filters (grouped_conv_cpu.cpp) and of
// norms and merges (merge_norm_cpu.cpp).
int64_t buffer_bytes(const ModelConfig& c, const StepBenchOptions& o) {
  const int64_t floats_of_keys = 2 * o.seq_len * (c.head_dim + 32);
  const int64_t parts = std::min<int64_t>(16, o.tokens / 256 + 1);
  const int64_t floats_of_filters = parts * c.qk_channels() * (c.head_dim * c.cca_time1 + 1);
  const int64_t floats_of_norms = 4 * c.hidden_size * std::min<int64_t>(256, o.tokens / 64 + 1);
  return 4 * (thread_count() * floats_of_keys + floats_of_filters + floats_of_norms);
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Sequences of random tokens, each token's label the next one.
void set_random_batch(TokenBatch& batch, const StepBenchOptions& options, int64_t vocab_size) {
  const Random random(1, "step bench");
  std::vector<int32_t> ids, labels, offsets;
  for (int64_t t = 0; t < options.tokens; ++t) {
    const auto token = [&](int64_t i) {
      return static_cast<int32_t>(
          random.below(static_cast<uint64_t>(i), static_cast<uint64_t>(vocab_size)));
    };
    ids.push_back(token(t));
    labels.push_back(token(t + 1));
    if (t % options.seq_len == 0) offsets.push_back(static_cast<int32_t>(t));
  }
  offsets.push_back(static_cast<int32_t>(options.tokens));
  batch.set(ids, labels, offsets);
}

struct Timing {
  double forward_backward = 0, optimizer = 0;
  Profile profile;
};

class StepBench {
 public:
  StepBench(const Recipe& recipe, const StepBenchOptions& options)
      : model_(recipe.model, options.compute, Gradients::allocate),
        optimizer_(model_.parameters(), recipe.optimizer) {
    set_random_batch(batch_, options, recipe.model.vocab_size);
    model_.parameters().initialize(ctx_, recipe.seed);
  }

  Timing step() {
    Timing timing;
    ctx_.profile = &timing.profile;
    const Clock::time_point start = Clock::now();
    timing.profile.enter(OpGroup::other);
    fill_zero(ctx_, model_.parameters().flat_gradients());
    model_.forward_backward(ctx_, batch_, 1.0f / static_cast<float>(batch_.tokens()));
    timing.profile.stop();
    timing.forward_backward = seconds_since(start);
    const Clock::time_point end = Clock::now();
    optimizer_.update(ctx_, LearningRates{}, optimizer_.gradient_norm(ctx_));
    timing.optimizer = seconds_since(end);
    ctx_.profile = nullptr;
    return timing;
  }

  const Zaya& model() const { return model_; }
  const TokenBatch& batch() const { return batch_; }
  // Tokens of the last step that chose an expert, summed over the blocks.
  int64_t expert_tokens() const {
    int64_t tokens = 0;
    for (const BlockSaved& block : model_.activations().blocks)
      tokens += block.experts.offsets.as<int32_t>()[model_.config().num_experts];
    return tokens;
  }

 private:
  Context ctx_;
  Zaya model_;
  Optimizer optimizer_;
  TokenBatch batch_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void summarise(StepSpeed& speed, std::vector<Timing> timings) {
  std::vector<double> optimizer;
  for (const Timing& t : timings) optimizer.push_back(t.optimizer);
  speed.optimizer_seconds = median(optimizer);
  std::sort(timings.begin(), timings.end(), [](const Timing& a, const Timing& b) {
    return a.forward_backward < b.forward_backward;
  });
  const Timing& middle = timings[timings.size() / 2];
  speed.forward_backward_seconds = middle.forward_backward;
  speed.fastest_seconds = timings.front().forward_backward;
  speed.slowest_seconds = timings.back().forward_backward;
  for (size_t g = 0; g < kOpGroups; ++g)
    speed.groups[g].seconds = middle.profile.seconds(static_cast<OpGroup>(g));
}

void count_flops(StepSpeed& speed, const StepBench& bench) {
  const auto flops = training_flops(bench.model().config(), bench.batch(), bench.expert_tokens());
  for (size_t g = 0; g < kOpGroups; ++g) {
    speed.groups[g].flops = flops[g];
    speed.flops += flops[g];
  }
}

}  // namespace

std::string_view name_of(OpGroup group) {
  constexpr std::array<std::string_view, kOpGroups> names{
      "projections", "convolutions", "attention",        "router",
      "experts",     "head + loss",  "norms and merges", "other"};
  return names[static_cast<size_t>(group)];
}

int64_t predicted_step_bytes(const Recipe& recipe, const StepBenchOptions& o) {
  const int64_t activations =
      Zaya::activation_bytes(recipe.model, o.compute, o.tokens, o.tokens / o.seq_len);
  return resident_memory_bytes() + memory_plan(recipe, o.compute, activations).total() +
         kLibraryBytes + thread_count() * kThreadBytes + buffer_bytes(recipe.model, o);
}

StepSpeed time_step(const Recipe& recipe, const StepBenchOptions& options,
                    const BenchProgress& progress) {
  StepSpeed speed;
  speed.tokens = options.tokens;
  speed.multiplied = multiplied_format(options.compute);
  speed.predicted_peak_bytes = predicted_step_bytes(recipe, options);
  progress("model", 0);
  StepBench bench(recipe, options);
  std::vector<Timing> timings;
  const int steps = kWarmUpSteps + options.repeats;
  for (int i = 0; i < steps; ++i) {
    progress(i < kWarmUpSteps ? std::string("warm-up")
                              : fmt::format("step {} of {}", i + 1 - kWarmUpSteps, options.repeats),
             static_cast<double>(i) / steps);
    const Timing timing = bench.step();
    if (i >= kWarmUpSteps) timings.push_back(timing);
  }
  summarise(speed, std::move(timings));
  count_flops(speed, bench);
  speed.peak_bytes = peak_memory_bytes();
  return speed;
}

// The ceilings allocate more than the step may, so they would hide its peak: they come before it
// and are forgotten, and again after it: another process's work only makes a ceiling look lower.
// Where the kernel forgets nothing, they come after it only.
StepSpeed measure_step(const Recipe& recipe, const StepBenchOptions& options,
                       const BenchProgress& progress) {
  constexpr double kBegin = 0.15, kEnd = 0.85;  // of the bar: where the steps are
  double bandwidth = 0, peak = 0;
  const auto measure_ceilings = [&](double done) {
    progress("memory bandwidth", done);
    bandwidth = std::max(bandwidth, measure_memory_bandwidth());
    progress("peak of matrix products", done + 0.05);
    peak = std::max(peak, measure_gemm_peak(multiplied_format(options.compute)));
  };
  if (forget_peak_memory()) {
    measure_ceilings(0);
    malloc_trim(0);
    forget_peak_memory();
  }
  StepSpeed speed = time_step(recipe, options, [&](std::string_view stage, double done) {
    progress(stage, kBegin + (kEnd - kBegin) * done);
  });
  measure_ceilings(kEnd);
  speed.memory_bandwidth = bandwidth;
  speed.peak_flops = peak;
  return speed;
}

}  // namespace zaya
