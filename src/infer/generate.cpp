#include "infer/generate.h"

#include <algorithm>
#include <chrono>

#include "data/stream_decoder.h"
#include "infer/decoder.h"

namespace zaya {
namespace {

constexpr int64_t kFirstTokens = 1024;  // room at the start for so many new tokens

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<int32_t> prompt_ids(const Tokenizer& tokenizer, std::string_view prompt) {
  std::vector<int32_t> ids;
  if (tokenizer.bos()) ids.push_back(*tokenizer.bos());
  const std::vector<int32_t> text = tokenizer.encode(prompt);
  ids.insert(ids.end(), text.begin(), text.end());
  if (ids.empty()) fail("--prompt: this tokenizer has no token to begin with: give some text");
  return ids;
}

}  // namespace

Generation generate(Context& ctx, Zaya& model, const Tokenizer& tokenizer, std::string_view prompt,
                    const GenerateOptions& options,
                    const std::function<bool(std::string_view)>& on_text) {
  if (tokenizer.vocab_size() > model.config().vocab_size)
    fail("the tokenizer has {} tokens, the model {}: they do not belong together",
         tokenizer.vocab_size(), model.config().vocab_size);
  const std::vector<int32_t> ids = prompt_ids(tokenizer, prompt);
  // Most texts end long before max_tokens: memory follows what is written.
  const auto prompt_length = static_cast<int64_t>(ids.size());
  Decoder decoder(model, 1, prompt_length + std::min(options.max_tokens, kFirstTokens));
  TokenSampler sampler(options.sampling);
  StreamDecoder stream(tokenizer);
  Generation result;
  result.prompt_tokens = static_cast<int64_t>(ids.size());
  const auto emit = [&](const std::string& text) {
    result.text += text;
    return text.empty() || on_text(text);
  };

  auto start = std::chrono::steady_clock::now();
  const Decoder::Piece prompt_piece{0, ids};
  Tensor logits = decoder.feed(ctx, {&prompt_piece, 1});
  result.prompt_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  while (result.new_tokens < options.max_tokens) {
    const int32_t id = sampler.next(logits);
    ++result.new_tokens;
    result.ended = id == tokenizer.eos();
    // Embedding rows beyond the tokenizer's tokens stand for nothing.
    const bool known = id < tokenizer.vocab_size();
    if (result.ended || (known && !emit(stream.push(id)))) break;
    if (result.new_tokens == options.max_tokens) break;
    if (decoder.length(0) == decoder.capacity()) decoder.reserve(2 * decoder.capacity());
    const Decoder::Piece next{0, {&id, 1}};
    logits = decoder.step(ctx, {&next, 1});
  }
  emit(stream.finish());
  result.decode_seconds = seconds_since(start);
  return result;
}

}  // namespace zaya
