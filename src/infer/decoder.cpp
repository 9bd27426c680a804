#include "infer/decoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace zaya {
namespace {

void copy(const Tensor& to, const Tensor& from) {
  ZAYA_REQUIRE(to.bytes() == from.bytes());
  if (to.bytes() > 0) std::memcpy(to.data, from.data, static_cast<size_t>(from.bytes()));
}

// Entry i of the first dimension.
Tensor entry(const Tensor& t, int64_t i) {
  const int64_t rows = t.shape[1];
  return t.row_range(i * rows, (i + 1) * rows);
}

}  // namespace

Decoder::Decoder(const Zaya& model, int64_t sequences, int64_t capacity, int64_t max_chunk)
    : model_(model),
      sequences_(sequences),
      capacity_(capacity),
      max_chunk_(std::min(max_chunk, sequences * capacity)),
      lengths_(static_cast<size_t>(sequences)) {
  ZAYA_REQUIRE(sequences >= 1 && capacity >= 1 && max_chunk >= 1);
  Arena plan;
  plan_memories(plan);
  memory_ = Arena(plan.peak());
  plan_memories(memory_);
}

void Decoder::plan_memories(Arena& arena) {
  const ModelConfig& c = model_.config();
  const DType activation = model_.compute();
  const Shape keys{sequences_ * capacity_, c.key_channels()};
  memories_.clear();
  for (int64_t block = 0; block < c.num_hidden_layers; ++block)
    memories_.push_back({arena.tensor(activation, keys), arena.tensor(activation, keys),
                         arena.tensor(activation, {sequences_, c.conv_history(), c.qk_channels()}),
                         arena.tensor(activation, {sequences_, 1, c.key_channels() / 2})});
  std::tie(full_, sliding_) = plan_rotary(arena, c, capacity_);
}

Decoder::Work Decoder::plan_work(Arena& arena, int64_t T, int64_t S) const {
  const ModelConfig& c = model_.config();
  const DType activation = model_.compute();
  return {arena.tensor(DType::f32, {T, c.hidden_size}),
          {plan_block(arena, c, activation, T, S), plan_block(arena, c, activation, T, S)},
          plan_head(arena, c, activation, T),
          arena.tensor(activation, {S, c.conv_history(), c.qk_channels()}),
          arena.tensor(activation, {S, 1, c.key_channels() / 2})};
}

void Decoder::reserve_work(int64_t T, int64_t S) {
  if (T > work_tokens_ || S > work_sequences_) {
    work_tokens_ = std::max(T, work_tokens_);
    work_sequences_ = std::max(S, work_sequences_);
    Arena plan;
    plan_work(plan, work_tokens_, work_sequences_);
    work_memory_ = Arena(plan.peak());
    scratch_ = Arena(static_cast<size_t>(
        Zaya::scratch_bytes(model_.config(), model_.compute(), work_tokens_, work_sequences_)));
    work_ = {};
  }
  if (work_.x && work_.x.rows() == T && work_.conv_rows.shape[0] == S) return;
  work_memory_.release(0);
  work_ = plan_work(work_memory_, T, S);
}

void Decoder::reserve(int64_t capacity) {
  if (capacity <= capacity_) return;
  const int64_t old_capacity = std::exchange(capacity_, capacity);
  const Arena old_memory = std::exchange(memory_, {});
  const std::vector<AttentionMemory> old = std::exchange(memories_, {});
  Arena plan;
  plan_memories(plan);
  memory_ = Arena(plan.peak());
  plan_memories(memory_);
  for (size_t block = 0; block < old.size(); ++block) {
    const AttentionMemory &to = memories_[block], &from = old[block];
    for (int64_t s = 0; s < sequences_; ++s) {
      const int64_t row = s * capacity_, old_row = s * old_capacity, rows = length(s);
      copy(to.keys.row_range(row, row + rows), from.keys.row_range(old_row, old_row + rows));
      copy(to.values.row_range(row, row + rows), from.values.row_range(old_row, old_row + rows));
    }
    copy(to.conv_rows, from.conv_rows);
    copy(to.delayed_value, from.delayed_value);
  }
}

int64_t Decoder::bytes() const {
  return static_cast<int64_t>(memory_.capacity() + work_memory_.capacity() + scratch_.capacity() +
                              output_memory_.capacity());
}

void Decoder::reset(int64_t sequence) {
  lengths_[static_cast<size_t>(sequence)] = 0;
  for (const AttentionMemory& memory : memories_)
    for (const Tensor& past :
         {entry(memory.conv_rows, sequence), entry(memory.delayed_value, sequence)})
      if (past.bytes() > 0) std::memset(past.data, 0, static_cast<size_t>(past.bytes()));
}

Tensor Decoder::feed(Context& ctx, std::span<const Piece> pieces) {
  Context together = ctx;
  together.rows = Rows::together;
  return run(together, pieces);
}

Tensor Decoder::step(Context& ctx, std::span<const Piece> pieces) {
  Context apart = ctx;
  apart.rows = Rows::apart;
  return run(apart, pieces);
}

Tensor Decoder::run(Context& ctx, std::span<const Piece> pieces) {
  const Timed timed(ctx.profile, OpGroup::other);
  const ModelConfig& c = model_.config();
  const auto count = static_cast<int64_t>(pieces.size());
  if (!logits_ || logits_.rows() != count) {
    const auto plan = [&](Arena& arena) {
      last_h_ = arena.tensor(model_.compute(), {count, c.hidden_size});
      logits_ = arena.tensor(DType::f32, {count, c.vocab_size});
    };
    Arena size;
    plan(size);
    if (size.peak() > output_memory_.capacity()) output_memory_ = Arena(size.peak());
    output_memory_.release(0);
    plan(output_memory_);
  }
  for (const Piece& piece : pieces)
    ZAYA_REQUIRE(!piece.ids.empty() && piece.sequence >= 0 && piece.sequence < sequences_ &&
                 length(piece.sequence) + static_cast<int64_t>(piece.ids.size()) <= capacity_);

  // Pieces fill chunks in their order; one that does not fit goes on in the next.
  int64_t room = max_chunk_;
  parts_.clear();
  const auto flush = [&] {
    if (!parts_.empty()) run_chunk(ctx, parts_);
    parts_.clear();
    room = max_chunk_;
  };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t s = pieces[static_cast<size_t>(i)].sequence;
    std::span<const int32_t> ids = pieces[static_cast<size_t>(i)].ids;
    while (!ids.empty()) {
      const auto some = ids.first(std::min(ids.size(), static_cast<size_t>(room)));
      ids = ids.subspan(some.size());
      parts_.push_back({s, {some, length(s), s * capacity_}, ids.empty() ? i : -1});
      room -= static_cast<int64_t>(some.size());
      if (room == 0) flush();
    }
  }
  flush();
  // The head reads one row a sequence, so it takes it as in generation, whatever came before.
  const Timed timed_head(ctx.profile, OpGroup::head);
  Context apart = ctx;
  apart.rows = Rows::apart;
  head_logits(apart, model_.head(), logits_, last_h_);
  return logits_;
}

AttentionMemory Decoder::recall(int64_t block, std::span<const Part> parts) const {
  const AttentionMemory& all = memories_[static_cast<size_t>(block)];
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto to = static_cast<int64_t>(i);
    copy(entry(work_.conv_rows, to), entry(all.conv_rows, parts[i].sequence));
    copy(entry(work_.delayed_value, to), entry(all.delayed_value, parts[i].sequence));
  }
  return {all.keys, all.values, work_.conv_rows, work_.delayed_value};
}

void Decoder::remember(int64_t block, std::span<const Part> parts) const {
  const AttentionMemory& all = memories_[static_cast<size_t>(block)];
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto from = static_cast<int64_t>(i);
    copy(entry(all.conv_rows, parts[i].sequence), entry(work_.conv_rows, from));
    copy(entry(all.delayed_value, parts[i].sequence), entry(work_.delayed_value, from));
  }
}

void Decoder::run_chunk(Context& ctx, std::span<const Part> parts) {
  const ModelConfig& c = model_.config();
  continuations_.clear();
  for (const Part& part : parts) continuations_.push_back(part.tokens);
  batch_.set_continuations(continuations_);
  reserve_work(batch_.tokens(), static_cast<int64_t>(parts.size()));
  model_.embed(ctx, work_.x, work_.blocks[0], batch_.ids());
  Tensor x = work_.x, router_state;
  for (int64_t block = 0; block < c.num_hidden_layers; ++block) {
    BlockSaved& saved = work_.blocks[block % 2];
    const NormAfter after = model_.norm_after(block, work_.blocks[(block + 1) % 2], work_.head);
    const AttentionMemory memory = recall(block, parts);
    block_forward(
        ctx, c, model_.blocks()[static_cast<size_t>(block)], saved, after, x, router_state,
        {&batch_, c.slides(block) ? sliding_ : full_, c.window(block), &memory}, scratch_);
    remember(block, parts);
    x = saved.out;
    router_state = saved.experts.router.state;
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    lengths_[static_cast<size_t>(part.sequence)] += static_cast<int64_t>(part.tokens.ids.size());
    const int64_t last = batch_.sequences().end(static_cast<int64_t>(i)) - 1;
    if (part.finishes >= 0)
      copy(last_h_.row_range(part.finishes, part.finishes + 1),
           work_.head.h.row_range(last, last + 1));
  }
}

}  // namespace zaya
