#include "model/zaya.h"

#include <algorithm>

#include "ops/cca/qk_norm_rope.h"
#include "ops/elementwise/elementwise.h"
#include "ops/embedding/embedding.h"
#include "ops/loss/cross_entropy.h"
#include "ops/norm/rms_norm.h"

namespace zaya {
namespace {

// Lays out `a`, whose list of blocks keeps its memory.
void plan_activations(Activations& a, Arena& arena, const ModelConfig& c, DType compute, int64_t T,
                      int64_t S) {
  a.x = arena.tensor(DType::f32, {T, c.hidden_size});
  a.blocks.resize(static_cast<size_t>(c.num_hidden_layers));
  for (BlockSaved& block : a.blocks) block = plan_block(arena, c, compute, T, S);
  a.head = plan_head(arena, c, compute, T);
}

int64_t embedding_scratch_bytes(const ModelConfig& c, int64_t T) {
  return 4 * T * (2 * c.hidden_size + c.router_hidden_size);
}

}  // namespace

std::pair<RotaryTables, RotaryTables> plan_rotary(Arena& arena, const ModelConfig& c,
                                                  int64_t count) {
  const Shape shape{count, c.rotary_channels() / 2};
  const auto tables = [&](double base) {
    RotaryTables t{arena.tensor(DType::f32, shape), arena.tensor(DType::f32, shape)};
    if (!arena.measuring()) rotary_tables(t.cos, t.sin, base);
    return t;
  };
  const RotaryTables full = tables(c.rope_theta);
  return {full, tables(c.rope_theta_sliding)};
}

Zaya::Zaya(const ModelConfig& config, DType compute, Gradients gradients)
    : Zaya(config, compute, Parameters(config, compute, gradients)) {}

Zaya::Zaya(const ModelConfig& config, DType compute, Parameters parameters)
    : config_(config), compute_(compute), parameters_(std::move(parameters)) {
  for (int64_t block = 0; block < config.num_hidden_layers; ++block)
    blocks_.push_back(block_parameters(parameters_, block));
  head_ = head_parameters(parameters_, config);
  embedding_ = {&parameters_.find("model.embed_tokens.weight"),
                &parameters_.find("model.input_hidden_states_bias"),
                &parameters_.find("model.input_hidden_states_scale")};
}

void Zaya::set_rotary_base(double base) {
  if (base == config_.rope_theta) return;
  config_.rope_theta = base;
  full_ = {};  // made again by the next reserve()
}

void Zaya::reserve(const TokenBatch& batch) {
  const int64_t T = batch.tokens(), S = batch.sequences().count();
  const int64_t positions = batch.last_position() + 1;
  if (!full_.cos || positions > full_.cos.rows()) {
    Arena plan;
    const int64_t count = std::max(positions, full_.cos ? full_.cos.rows() : 0);
    plan_rotary(plan, config_, count);
    rotary_memory_ = Arena(plan.peak());
    std::tie(full_, sliding_) = plan_rotary(rotary_memory_, config_, count);
  }
  if (T > reserved_tokens_ || S > reserved_sequences_) {
    reserved_tokens_ = std::max(T, reserved_tokens_);
    // Half as many again: the number of documents changes from batch to batch.
    reserved_sequences_ = std::max(S + S / 2, reserved_sequences_);
    Arena plan;
    plan_activations(activations_, plan, config_, compute_, reserved_tokens_, reserved_sequences_);
    memory_ = Arena(plan.peak());
    planned_tokens_ = 0;
    scratch_ = Arena(static_cast<size_t>(
        scratch_bytes(config_, compute_, reserved_tokens_, reserved_sequences_)));
  }
  scratch_.release(0);
  if (planned_tokens_ == T && planned_sequences_ == S) return;
  planned_tokens_ = T;
  planned_sequences_ = S;
  memory_.release(0);
  plan_activations(activations_, memory_, config_, compute_, T, S);
}

void Zaya::first_norm_backward(Context& ctx, const Tensor& dx, const Tensor& dh) const {
  const Timed timed(ctx.profile, OpGroup::norms);
  const Parameter& norm = *blocks_.front().input_norm;
  rms_norm_backward(ctx, dx, norm.gradient, dh, activations_.x, norm.weight,
                    activations_.blocks.front().input_rstd);
}

NormAfter Zaya::norm_after(int64_t block, const BlockSaved& next, const HeadSaved& head) const {
  if (block + 1 == config_.num_hidden_layers) return {head_.norm, head.h, head.rstd};
  return {blocks_[block + 1].input_norm, next.input_h, next.input_rstd};
}

NormAfter Zaya::norm_after(int64_t block) const {
  const size_t next = static_cast<size_t>(block + 1) % activations_.blocks.size();
  return norm_after(block, activations_.blocks[next], activations_.head);
}

AttentionInputs Zaya::attention_inputs(const TokenBatch& batch, int64_t block) const {
  return {&batch, config_.slides(block) ? sliding_ : full_, config_.window(block)};
}

void Zaya::embed(Context& ctx, const Tensor& x, const BlockSaved& first, const Tensor& ids) const {
  embedding_forward(ctx, x, ids, embedding_.table->matrix(), embedding_.bias->weight,
                    embedding_.scale->weight);
  const Timed timed(ctx.profile, OpGroup::norms);
  // All other norms follow a merge.
  rms_norm_forward(ctx, first.input_h, first.input_rstd, x, blocks_.front().input_norm->weight,
                   config_.rms_norm_eps);
}

void Zaya::forward(Context& ctx, const TokenBatch& batch) {
  const Timed timed(ctx.profile, OpGroup::other);
  reserve(batch);
  embed(ctx, activations_.x, activations_.blocks.front(), batch.ids());
  Tensor x = activations_.x, router_state;
  for (int64_t block = 0; block < config_.num_hidden_layers; ++block) {
    BlockSaved& saved = activations_.blocks[block];
    block_forward(ctx, config_, blocks_[block], saved, norm_after(block), x, router_state,
                  attention_inputs(batch, block), scratch_);
    x = saved.out;
    router_state = saved.experts.router.state;
  }
}

double Zaya::losses(Context& ctx, const TokenBatch& batch) {
  head_losses(ctx, head_, activations_.head, batch.labels(), scratch_);
  return sum_rows(ctx, activations_.head.losses);
}

void Zaya::logits(Context& ctx, const Tensor& logits, int64_t begin) {
  head_logits(ctx, head_, logits, activations_.head.h.row_range(begin, begin + logits.rows()));
}

double Zaya::forward_backward(Context& ctx, const TokenBatch& batch, float loss_scale) {
  const Timed timed(ctx.profile, OpGroup::other);
  forward(ctx, batch);
  ArenaScope scope(scratch_);
  const int64_t T = batch.tokens();
  const Tensor dx = scratch_.tensor(DType::f32, {T, config_.hidden_size});
  const Tensor dh = scratch_.tensor(DType::f32, {T, config_.hidden_size});
  const Tensor dstate = scratch_.tensor(DType::f32, {T, config_.router_hidden_size});
  head_losses_backward(ctx, head_, dh, activations_.head, batch.labels(), loss_scale, scratch_);
  fill_zero(ctx, dx);  // the stream ends in the head's norm
  fill_zero(ctx, dstate);
  for (int64_t block = config_.num_hidden_layers - 1; block >= 0; --block) {
    const BlockSaved* before = block > 0 ? &activations_.blocks[block - 1] : nullptr;
    block_backward(ctx, config_, blocks_[block], dx, dh, dstate, activations_.blocks[block],
                   norm_after(block), before ? before->out : activations_.x,
                   before ? before->experts.router.state : Tensor(), attention_inputs(batch, block),
                   scratch_);
  }
  first_norm_backward(ctx, dx, dh);
  embedding_backward(ctx, embedding_.table->gradient, embedding_.bias->gradient,
                     embedding_.scale->gradient, dx, batch.ids(), embedding_.table->matrix().values,
                     embedding_.bias->weight, embedding_.scale->weight);
  return sum_rows(ctx, activations_.head.losses);
}

int64_t Zaya::scratch_bytes(const ModelConfig& c, DType compute, int64_t T, int64_t S) {
  const int64_t a = static_cast<int64_t>(size_of(compute));
  const int64_t D = c.hidden_size, C = c.qk_channels(), I = c.moe_intermediate_size;
  const int64_t padded = T + S * (c.cca_time1 - 1);
  const int64_t block = T * D * a;
  const int64_t attention =
      T * a * (2 * c.query_channels() + 2 * c.key_channels() + c.key_channels() / 2 + C) +
      4 * C * (2 * T + padded);
  const int64_t router = 4 * T * (c.router_classes() + 2 * c.router_hidden_size);
  const int64_t skipped = c.skip == Skip::pass ? 4 * D : 0;
  const int64_t experts = T * (a * (2 * D + 3 * I) + skipped + 4) + router;
  const int64_t head = std::min(T, head_chunk_rows(c.vocab_size)) * c.vocab_size * 8;
  // Tensors begin at multiples of 64 bytes. tests/unit/model checks the sum against what a step
  // takes.
  constexpr int64_t kAlignmentMargin = 64 * 64;
  return embedding_scratch_bytes(c, T) + std::max(block + std::max(attention, experts), head) +
         kAlignmentMargin;
}

int64_t Zaya::activation_bytes(const ModelConfig& config, DType compute, int64_t T, int64_t S) {
  Arena plan;
  Activations activations;
  plan_activations(activations, plan, config, compute, T, S);
  return static_cast<int64_t>(plan.peak()) + scratch_bytes(config, compute, T, S);
}

}  // namespace zaya
