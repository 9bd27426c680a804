#include "plan/decode_bench.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "backend/cpu/gemm_peak.h"
#include "backend/cpu/instruction_set.h"
#include "core/random.h"
#include "infer/decoder.h"
#include "model/flops.h"
#include "plan/memory_use.h"
#include "plan/random_weights.h"

namespace zaya {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<int32_t> random_ids(int64_t count, int64_t vocab_size) {
  const Random random(1, "tokens");
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(
        random.below(static_cast<uint64_t>(i), static_cast<uint64_t>(vocab_size))));
  return ids;
}

// Weights that a token meets: of the experts one in E; of the embedding table one row, unless it is
// the head, too.
void count_bytes(DecodeSpeed& speed, const Zaya& model) {
  const ModelConfig& c = model.config();
  for (const Parameter& p : model.parameters().all()) {
    int64_t bytes = 0;
    for (const Weight& matrix : p.matrices) bytes += matrix.bytes();
    speed.weight_bytes += bytes;
    const bool table = p.spec.name == "model.embed_tokens.weight";
    if (table && !c.tie_word_embeddings)
      speed.active_bytes += bytes / c.vocab_size;
    else
      speed.active_bytes += p.spec.per_expert ? bytes / c.num_experts : bytes;
  }
  speed.head_bytes = model.head().weight->matrix().bytes();
}

// Forward alone, and of the head one row.
double prompt_flops(const ModelConfig& c, int64_t tokens) {
  TokenBatch batch;
  const std::vector<int32_t> ids(static_cast<size_t>(tokens));
  const Continuation all{ids, 0, 0};
  batch.set_continuations({&all, 1});
  const auto groups = training_flops(c, batch, c.num_hidden_layers * tokens);
  const double head = groups[static_cast<size_t>(OpGroup::head)];
  const double sum = std::accumulate(groups.begin(), groups.end(), 0.0);
  return (sum - head + head / static_cast<double>(tokens)) / 3;
}

struct Step {
  double seconds;
  Profile profile;
};

// Generates tokens one after the other; which ones does not matter.
std::vector<Step> time_steps(Context& ctx, Decoder& decoder, std::span<const int32_t> ids,
                             const BenchProgress& progress) {
  std::vector<Step> steps;
  for (size_t i = 0; i < ids.size(); ++i) {
    progress("tokens", 0.5 + 0.4 * static_cast<double>(i) / static_cast<double>(ids.size()));
    Step step{};
    ctx.profile = &step.profile;
    const Decoder::Piece next{0, ids.subspan(i, 1)};
    const Clock::time_point start = Clock::now();
    decoder.step(ctx, {&next, 1});
    step.seconds = seconds_since(start);
    steps.push_back(step);
  }
  ctx.profile = nullptr;
  return steps;
}

void summarize(DecodeSpeed& speed, std::vector<Step> steps) {
  std::sort(steps.begin(), steps.end(),
            [](const Step& a, const Step& b) { return a.seconds < b.seconds; });
  const Step& median = steps[steps.size() / 2];
  speed.step_seconds = median.seconds;
  speed.fastest_seconds = steps.front().seconds;
  speed.slowest_seconds = steps.back().seconds;
  for (size_t g = 0; g < kOpGroups; ++g)
    speed.groups[g] = median.profile.seconds(static_cast<OpGroup>(g));
}

}  // namespace

int64_t predicted_decode_bytes(const DecodeBenchOptions& o) {
  const ModelConfig& c = o.model;
  const int64_t T = o.prompt_tokens;
  Arena block;
  plan_block(block, c, o.compute, T, 1);
  const int64_t caches = (T + o.new_tokens) * c.num_hidden_layers * 2 * c.key_channels() *
                         static_cast<int64_t>(size_of(o.compute));
  return random_model_bytes(c, o.weights) + caches + 2 * static_cast<int64_t>(block.peak()) +
         Zaya::scratch_bytes(c, o.compute, T, 1);
}

int64_t blocks_that_fit(DecodeBenchOptions options, int64_t bytes) {
  const auto needed = [&](int64_t blocks) {
    options.model.num_hidden_layers = blocks;
    return predicted_decode_bytes(options);
  };
  int64_t fit = 0, too_many = options.model.num_hidden_layers + 1;
  while (too_many - fit > 1) {
    const int64_t middle = (fit + too_many) / 2;
    (needed(middle) <= bytes ? fit : too_many) = middle;
  }
  return fit;
}

DecodeSpeed measure_decode(const DecodeBenchOptions& o, const BenchProgress& progress) {
  DecodeSpeed speed;
  speed.multiplied = multiplied_format(DType::bf16);
  progress("ceilings", 0.0);
  speed.peak_flops = measure_gemm_peak(speed.multiplied);
  speed.read_bandwidth = measure_read_bandwidth();
  forget_peak_memory();

  Context ctx;
  progress("random weights", 0.1);
  const Zaya model = random_model(ctx, o.model, o.weights, o.compute);
  count_bytes(speed, model);
  speed.cache_bytes = (o.prompt_tokens + o.new_tokens / 2) * o.model.num_hidden_layers * 2 *
                      o.model.key_channels() * static_cast<int64_t>(size_of(o.compute));
  speed.prompt_flops = prompt_flops(o.model, o.prompt_tokens);

  Decoder decoder(model, 1, o.prompt_tokens + o.new_tokens, o.prompt_tokens);
  const std::vector<int32_t> ids = random_ids(o.prompt_tokens + o.new_tokens, o.model.vocab_size);
  const Decoder::Piece prompt{0, std::span(ids).first(static_cast<size_t>(o.prompt_tokens))};
  for (int time = 0; time < 2; ++time) {  // the first makes oneDNN's primitives
    progress("prompt", 0.3 + 0.1 * time);
    decoder.reset(0);
    const Clock::time_point start = Clock::now();
    decoder.feed(ctx, {&prompt, 1});
    const double seconds = seconds_since(start);
    speed.prompt_seconds = time == 0 ? seconds : std::min(seconds, speed.prompt_seconds);
  }
  summarize(speed,
            time_steps(ctx, decoder, std::span(ids).subspan(static_cast<size_t>(o.prompt_tokens)),
                       progress));
  speed.peak_bytes = peak_memory_bytes();
  progress("ceilings", 0.95);
  speed.read_bandwidth = std::max(speed.read_bandwidth, measure_read_bandwidth());
  speed.peak_flops = std::max(speed.peak_flops, measure_gemm_peak(speed.multiplied));
  return speed;
}

}  // namespace zaya
