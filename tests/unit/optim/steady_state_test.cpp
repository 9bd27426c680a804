// A training step in steady state takes no memory and makes no oneDNN primitive, although every
// step brings other documents and other loads of the experts. (oneDNN keeps its list of arguments
// in a few small pieces of memory at each call: only pieces of a kilobyte and more count.)
#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/matmul_kernel.h"
#include "backend/cpu/threads.h"
#include "optim/optimizer.h"
#include "support/allocations.h"
#include "support/tiny_model.h"

namespace zaya {
namespace {

ModelConfig config() {
  ModelConfig c = test::tiny_config();
  c.hidden_size = 64;
  c.head_dim = 16;
  c.moe_intermediate_size = 48;
  return c;
}

// Batches of 400 tokens in 1 to 6 documents.
std::vector<TokenBatch> batches() {
  std::vector<TokenBatch> all;
  for (const std::vector<int32_t>& lengths : std::vector<std::vector<int32_t>>{
           {60, 60, 60, 60, 60, 100}, {400}, {1, 399}, {123, 277}, {80, 90, 230}, {33, 367}})
    all.push_back(test::TinyBatch(config(), lengths).tokens());
  return all;
}

void expect_steady_steps(DType compute) {
  if (!kCountsAllocations) GTEST_SKIP() << "the sanitizer has its own malloc";
  Context ctx;
  Zaya model = test::tiny_model(config(), compute);
  OptimizerConfig settings;
  Optimizer optimizer(model.parameters(), settings);
  const std::vector<TokenBatch> data = batches();
  const auto step = [&](const TokenBatch& batch) {
    model.forward_backward(ctx, batch, 1.0f / 400);
    // Rates of 0: the second time round the experts have the loads of the first.
    optimizer.update(ctx, LearningRates{}, optimizer.gradient_norm(ctx));
  };
  // On one thread: of several, one may meet its largest piece of work late, and its buffers grow
  // then.
  set_thread_count(1);
  for (int i = 0; i < 2; ++i)
    for (const TokenBatch& batch : data) step(batch);
  const int64_t made = matmul_primitives_made();
  test::large_allocations = 0;
  test::counting = true;
  for (int i = 0; i < 4; ++i)
    for (const TokenBatch& batch : data) step(batch);
  test::counting = false;
  set_thread_count(0);
  EXPECT_EQ(matmul_primitives_made(), made);
  if (products_take_memory()) GTEST_SKIP() << "oneDNN takes memory at every call on this machine";
  EXPECT_EQ(test::large_allocations, 0);
}

TEST(SteadyState, AStepInF32TakesNoMemory) { expect_steady_steps(DType::f32); }
TEST(SteadyState, AStepInBf16TakesNoMemory) { expect_steady_steps(DType::bf16); }

}  // namespace
}  // namespace zaya
