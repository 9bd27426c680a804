#include "plan/decode_bench.h"

#include <gtest/gtest.h>

#include "plan/random_weights.h"
#include "support/tiny_model.h"

namespace zaya {
namespace {

using test::tiny_config;

// Inputs of 32 are codes; the experts' inner width of 24 is not divisible, and stays bf16.
ModelConfig config() {
  ModelConfig c = tiny_config();
  c.sliding_layers = {};
  c.sliding_window = 0;
  return c;
}

TEST(RandomModel, HoldsItsWeightsAsAsked) {
  Context ctx;
  for (WeightFormat format :
       {WeightFormat::f32, WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
    const Zaya model = random_model(ctx, config(), format, DType::bf16);
    EXPECT_EQ(model.head().weight->matrix().format(), format);
    EXPECT_EQ(model.blocks()[0].experts.gate_up_proj->matrices.size(), 4u);
    // Arenas round every tensor up to 64 bytes.
    EXPECT_LE(model.parameters().weight_bytes(), random_model_bytes(config(), format));
    EXPECT_GE(1.5 * static_cast<double>(model.parameters().weight_bytes()),
              static_cast<double>(random_model_bytes(config(), format)));
  }
}

TEST(DecodeBench, CountsTheBytesThatATokenReads) {
  DecodeBenchOptions options;
  options.model = config();
  options.weights = WeightFormat::bf16;
  options.compute = DType::f32;
  options.prompt_tokens = 9;
  options.new_tokens = 4;
  const DecodeSpeed speed = measure_decode(options, [](std::string_view, double) {});
  const ModelConfig& c = options.model;
  int64_t active = 0, all = 0;
  for (const ParameterSpec& spec : parameter_specs(c)) {
    const int64_t bytes = spec.shape.size() * (is_read_in_place(spec.role) ? 2 : 4);
    all += bytes;
    active += spec.per_expert ? bytes / c.num_experts : bytes;
  }
  EXPECT_EQ(speed.weight_bytes, all);
  EXPECT_EQ(speed.active_bytes, active);
  EXPECT_EQ(speed.head_bytes, 2 * c.vocab_size * c.hidden_size);
  EXPECT_EQ(speed.cache_bytes, (9 + 2) * c.num_hidden_layers * 2 * c.key_channels() * 4);
  EXPECT_GT(speed.roofline_fraction(), 0);
  EXPECT_GT(speed.prefill_utilisation(), 0);
  EXPECT_LE(speed.fastest_seconds, speed.step_seconds);
  EXPECT_LE(speed.step_seconds, speed.slowest_seconds);
}

TEST(DecodeBench, TakesAsManyBlocksAsFit) {
  DecodeBenchOptions options;
  options.model = config();
  options.prompt_tokens = 8;
  const int64_t whole = predicted_decode_bytes(options);
  EXPECT_EQ(blocks_that_fit(options, whole), 3);
  EXPECT_EQ(blocks_that_fit(options, whole + (int64_t{1} << 40)), 3);
  EXPECT_EQ(blocks_that_fit(options, whole - 1), 2);
  options.model.num_hidden_layers = 2;
  EXPECT_EQ(blocks_that_fit(options, predicted_decode_bytes(options)), 2);
  EXPECT_EQ(blocks_that_fit(options, 1000), 0);
}

}  // namespace
}  // namespace zaya
