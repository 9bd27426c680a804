#include "model/head.h"

#include <algorithm>

#include "ops/linear/linear.h"
#include "ops/loss/cross_entropy.h"

namespace zaya {
namespace {

// Calls f(begin, end) for pieces of T rows.
template <class F>
void for_each_chunk(int64_t T, int64_t vocab_size, F&& f) {
  const int64_t chunk = head_chunk_rows(vocab_size);
  for (int64_t begin = 0; begin < T; begin += chunk) f(begin, std::min(begin + chunk, T));
}

}  // namespace

HeadParameters head_parameters(Parameters& parameters, const ModelConfig& c) {
  return {&parameters.find("model.norm.weight"),
          &parameters.find(c.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight")};
}

int64_t head_chunk_rows(int64_t vocab_size) {
  constexpr int64_t kRowTile = 256;  // rows of a matrix product's tile
  constexpr int64_t kLogits = int64_t{8} << 20;
  return std::clamp(kLogits / vocab_size / kRowTile, int64_t{1}, int64_t{8}) * kRowTile;
}

HeadSaved plan_head(Arena& arena, const ModelConfig& c, DType activation, int64_t T) {
  return {arena.tensor(DType::f32, {T}), arena.tensor(activation, {T, c.hidden_size}),
          arena.tensor(DType::f32, {T})};
}

void head_logits(Context& ctx, const HeadParameters& w, const Tensor& logits, const Tensor& h) {
  linear_forward(ctx, logits, h, w.weight->matrix());
}

void head_losses(Context& ctx, const HeadParameters& w, const HeadSaved& saved,
                 const Tensor& labels, Arena& scratch) {
  const Timed timed(ctx.profile, OpGroup::head);
  const int64_t T = saved.h.rows(), V = w.weight->spec.shape[0];
  ArenaScope scope(scratch);
  const Tensor logits = scratch.tensor(DType::f32, {std::min(T, head_chunk_rows(V)), V});
  for_each_chunk(T, V, [&](int64_t begin, int64_t end) {
    const Tensor rows = logits.row_range(0, end - begin);
    head_logits(ctx, w, rows, saved.h.row_range(begin, end));
    cross_entropy_forward(ctx, saved.losses.column_range(begin, end), rows,
                          labels.column_range(begin, end));
  });
}

void head_losses_backward(Context& ctx, const HeadParameters& w, const Tensor& dh,
                          const HeadSaved& saved, const Tensor& labels, float scale,
                          Arena& scratch) {
  const Timed timed(ctx.profile, OpGroup::head);
  const int64_t T = saved.h.rows(), V = w.weight->spec.shape[0];
  const Shape chunk{std::min(T, head_chunk_rows(V)), V};
  ArenaScope scope(scratch);
  const Tensor logits = scratch.tensor(DType::f32, chunk);
  const Tensor dlogits =
      saved.h.dtype == DType::f32 ? logits : scratch.tensor(saved.h.dtype, chunk);
  for_each_chunk(T, V, [&](int64_t begin, int64_t end) {
    const Tensor rows = logits.row_range(0, end - begin);
    const Tensor drows = dlogits.row_range(0, end - begin);
    const Tensor h = saved.h.row_range(begin, end);
    head_logits(ctx, w, rows, h);
    cross_entropy_forward_backward(ctx, saved.losses.column_range(begin, end), drows, rows,
                                   labels.column_range(begin, end), scale);
    linear_backward_input(ctx, dh.row_range(begin, end), drows, w.weight->matrix().values,
                          Into::overwrite);
    linear_backward_weight(ctx, w.weight->gradient, drows, h);
  });
}

}  // namespace zaya
