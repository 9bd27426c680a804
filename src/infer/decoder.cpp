#include "infer/decoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/elementwise/elementwise.h"

namespace zaya {

Decoder::Decoder(Zaya& model, int64_t capacity, int64_t max_chunk)
    : model_(model), capacity_(capacity), max_chunk_(std::min(max_chunk, capacity)) {
  ZAYA_REQUIRE(max_chunk_ >= 1);
  Arena memory_plan, work_plan;
  plan_memories(memory_plan);
  plan_work(work_plan, max_chunk_);
  memory_ = Arena(memory_plan.peak());
  work_memory_ = Arena(work_plan.peak());
  scratch_ = Arena(
      static_cast<size_t>(Zaya::scratch_bytes(model.config(), model.compute(), max_chunk_, 1)));
  plan_memories(memory_);
}

void Decoder::plan_memories(Arena& arena) {
  const ModelConfig& c = model_.config();
  const DType activation = model_.compute();
  memories_.clear();
  for (int64_t block = 0; block < c.num_hidden_layers; ++block)
    memories_.push_back({arena.tensor(activation, {capacity_, c.key_channels()}),
                         arena.tensor(activation, {capacity_, c.key_channels()}),
                         arena.tensor(activation, {1, c.conv_history(), c.qk_channels()}),
                         arena.tensor(activation, {1, 1, c.key_channels() / 2})});
  std::tie(full_, sliding_) = plan_rotary(arena, c, capacity_);
}

Decoder::Work Decoder::plan_work(Arena& arena, int64_t T) const {
  const ModelConfig& c = model_.config();
  const DType activation = model_.compute();
  return {arena.tensor(DType::f32, {T, c.hidden_size}),
          {plan_block(arena, c, activation, T, 1), plan_block(arena, c, activation, T, 1)},
          plan_head(arena, c, activation, T),
          arena.tensor(DType::f32, {1, c.vocab_size})};
}

void Decoder::reserve(int64_t capacity) {
  if (capacity <= capacity_) return;
  capacity_ = capacity;
  const Arena old_memory = std::exchange(memory_, {});
  const std::vector<AttentionMemory> old = std::exchange(memories_, {});
  Arena plan;
  plan_memories(plan);
  memory_ = Arena(plan.peak());
  plan_memories(memory_);
  const auto copy = [](const Tensor& to, const Tensor& from) {
    std::memcpy(to.data, from.data, static_cast<size_t>(from.bytes()));
  };
  for (size_t block = 0; block < old.size(); ++block) {
    copy(memories_[block].keys, old[block].keys);
    copy(memories_[block].values, old[block].values);
    copy(memories_[block].conv_rows, old[block].conv_rows);
    copy(memories_[block].delayed_value, old[block].delayed_value);
  }
}

int64_t Decoder::bytes() const {
  return static_cast<int64_t>(memory_.capacity() + work_memory_.capacity() + scratch_.capacity());
}

void Decoder::reset() {
  Context ctx;
  length_ = 0;
  for (AttentionMemory& memory : memories_) {
    fill_zero(ctx, memory.conv_rows);
    fill_zero(ctx, memory.delayed_value);
  }
}

Tensor Decoder::feed(Context& ctx, std::span<const int32_t> ids) {
  ZAYA_REQUIRE(!ids.empty() && length_ + static_cast<int64_t>(ids.size()) <= capacity_);
  while (!ids.empty()) {
    const auto chunk = ids.first(std::min(ids.size(), static_cast<size_t>(max_chunk_)));
    run_chunk(ctx, chunk);
    ids = ids.subspan(chunk.size());
  }
  const Tensor& h = work_.head.h;
  head_logits(ctx, model_.head(), work_.logits, h.row_range(h.rows() - 1, h.rows()));
  return work_.logits;
}

void Decoder::run_chunk(Context& ctx, std::span<const int32_t> ids) {
  const ModelConfig& c = model_.config();
  const auto T = static_cast<int64_t>(ids.size());
  if (!work_.x || work_.x.rows() != T) {
    work_memory_.release(0);
    work_ = plan_work(work_memory_, T);
  }
  batch_.set_continuation(ids, length_);
  model_.embed(ctx, work_.x, work_.blocks[0], batch_.ids());
  Tensor x = work_.x, router_state;
  for (int64_t block = 0; block < c.num_hidden_layers; ++block) {
    BlockSaved& saved = work_.blocks[block % 2];
    const NormAfter after = model_.norm_after(block, work_.blocks[(block + 1) % 2], work_.head);
    block_forward(ctx, c, model_.blocks()[block], saved, after, x, router_state,
                  {&batch_, c.slides(block) ? sliding_ : full_, c.window(block), &memories_[block]},
                  scratch_);
    x = saved.out;
    router_state = saved.experts.router.state;
  }
  length_ += T;
}

}  // namespace zaya
