#include "eval/perplexity.h"

#include <algorithm>
#include <cmath>

#include "core/ceil_div.h"
#include "infer/decoder.h"
#include "infer/generate.h"
#include "ops/loss/cross_entropy.h"

namespace zaya {
namespace {

struct Window {
  std::vector<int32_t> ids, labels;  // the last token foretells nothing
};

// Window i of a text: bos, if there is one, and the tokens that are its own.
Window window_of(std::span<const int32_t> text, std::optional<int32_t> bos, int64_t i,
                 int64_t context) {
  const int64_t own = context - (bos ? 1 : 0);
  const int64_t begin = i * own;
  const int64_t end = std::min(begin + own, static_cast<int64_t>(text.size()));
  Window window;
  if (bos) window.ids.push_back(*bos);
  window.ids.insert(window.ids.end(), text.begin() + begin, text.begin() + end);
  window.labels.assign(window.ids.begin() + 1, window.ids.end());
  window.labels.push_back(kIgnoredLabel);
  return window;
}

double score_at_once(Context& ctx, Zaya& model, const Window& window) {
  const std::vector<int32_t> bounds{0, static_cast<int32_t>(window.ids.size())};
  TokenBatch batch;
  batch.set(window.ids, window.labels, bounds);
  model.forward(ctx, batch);
  return model.losses(ctx, batch);
}

double score_by_token(Context& ctx, Decoder& decoder, const Window& window) {
  decoder.reset(0);
  float loss = 0;
  double sum = 0;
  for (size_t t = 0; t + 1 < window.ids.size(); ++t) {
    const Decoder::Piece next{0, std::span(window.ids).subspan(t, 1)};
    const Tensor logits = decoder.step(ctx, {&next, 1});
    int32_t label = window.labels[t];
    cross_entropy_forward(ctx, Tensor(&loss, DType::f32, {1}), logits,
                          Tensor(&label, DType::i32, {1}));
    sum += static_cast<double>(loss);
  }
  return sum;
}

}  // namespace

double TextScore::perplexity() const { return std::exp(loss()); }

double TextScore::bits_per_byte() const {
  return loss_sum / std::log(2.0) / static_cast<double>(std::max<int64_t>(bytes, 1));
}

TextScore score_text(Context& ctx, Zaya& model, const Tokenizer& tokenizer, std::string_view text,
                     int64_t context, ReadAs read_as, const std::function<void(double)>& progress) {
  ZAYA_REQUIRE(context >= 2);
  check_belongs(tokenizer, model.config());
  const std::vector<int32_t> ids = tokenizer.encode(text);
  const std::optional<int32_t> bos = tokenizer.bos();
  if (ids.size() + (bos ? 1 : 0) < 2) fail("the text has no token to foretell");
  const int64_t count = ceil_div(static_cast<int64_t>(ids.size()), context - (bos ? 1 : 0));

  std::optional<Decoder> decoder;
  if (read_as == ReadAs::generated) decoder.emplace(model, 1, context, 1);
  TextScore score;
  for (int64_t i = 0; i < count; ++i) {
    const Window window = window_of(ids, bos, i, context);
    if (window.ids.size() < 2) continue;
    score.loss_sum +=
        decoder ? score_by_token(ctx, *decoder, window) : score_at_once(ctx, model, window);
    score.tokens += static_cast<int64_t>(window.ids.size()) - 1;
    for (int32_t label : window.labels)
      if (label != kIgnoredLabel) score.bytes += tokenizer.byte_length(label);
    progress(static_cast<double>(i + 1) / static_cast<double>(count));
  }
  return score;
}

}  // namespace zaya
