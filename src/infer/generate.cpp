#include "infer/generate.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "core/error.h"
#include "infer/prefill.h"

namespace zaya {
namespace {

// Most texts end long before max_tokens: room at the start for so many new tokens.
constexpr int64_t kFirstTokens = 1024;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A text being written in one of the decoder's sequences.
struct Slot {
  Slot(size_t prompt, const Tokenizer& tokenizer, const GenerateOptions& options, int64_t room)
      : index(prompt),
        sampler(options.sampling, tokenizer.vocab_size()),
        writer(tokenizer, sampler, options.write, room) {}
  Slot(const Slot&) = delete;

  size_t index;
  TokenSampler sampler;
  Writer writer;
  Clock::time_point decode_start;
};

class Batch {
 public:
  Batch(Context& ctx, const Zaya& model, const Tokenizer& tokenizer,
        const std::vector<std::vector<int32_t>>& prompts, const GenerateOptions& options,
        const GenerateHooks& hooks);
  std::vector<Generation> run();

 private:
  void begin(size_t sequence);
  void take(size_t sequence, const Tensor& logits);
  void step();
  void emit(size_t index, const std::string& text);
  void end(size_t sequence);
  bool busy() const {
    return std::any_of(slots_.begin(), slots_.end(),
                       [](const auto& slot) { return slot != nullptr; });
  }

  Context& ctx_;
  const Tokenizer& tokenizer_;
  const std::vector<std::vector<int32_t>>& prompts_;
  const GenerateOptions& options_;
  const GenerateHooks& hooks_;
  int64_t longest_;  // the model's longest sequence
  Decoder decoder_;
  std::vector<std::unique_ptr<Slot>> slots_;  // of each sequence; null: idle
  size_t next_ = 0;                           // the next prompt to begin
  std::vector<Generation> results_;
};

int64_t first_capacity(const std::vector<std::vector<int32_t>>& prompts,
                       const GenerateOptions& options, int64_t longest) {
  size_t prompt = 0;
  for (const auto& ids : prompts) prompt = std::max(prompt, ids.size());
  const int64_t wanted =
      static_cast<int64_t>(prompt) + std::min(options.write.max_tokens, kFirstTokens);
  return std::min(wanted, longest);
}

Batch::Batch(Context& ctx, const Zaya& model, const Tokenizer& tokenizer,
             const std::vector<std::vector<int32_t>>& prompts, const GenerateOptions& options,
             const GenerateHooks& hooks)
    : ctx_(ctx),
      tokenizer_(tokenizer),
      prompts_(prompts),
      options_(options),
      hooks_(hooks),
      longest_(model.config().max_position_embeddings),
      decoder_(model, std::min(options.batch, static_cast<int64_t>(prompts.size())),
               first_capacity(prompts, options, longest_)),
      slots_(static_cast<size_t>(std::min(options.batch, static_cast<int64_t>(prompts.size())))),
      results_(prompts.size()) {}

std::vector<Generation> Batch::run() {
  while (true) {
    for (size_t sequence = 0; sequence < slots_.size(); ++sequence)
      while (!slots_[sequence] && next_ < prompts_.size() && !hooks_.interrupted()) begin(sequence);
    if (!busy()) return std::move(results_);
    step();
  }
}

void Batch::begin(size_t sequence) {
  const size_t index = next_++;
  const std::vector<int32_t>& prompt = prompts_[index];
  Generation& result = results_[index];
  result.prompt_tokens = static_cast<int64_t>(prompt.size());
  slots_[sequence] =
      std::make_unique<Slot>(index, tokenizer_, options_, longest_ - result.prompt_tokens);
  slots_[sequence]->sampler.see(prompt);
  const auto start = Clock::now();
  decoder_.reset(static_cast<int64_t>(sequence));
  const auto logits =
      prefill(ctx_, decoder_, static_cast<int64_t>(sequence), prompt, hooks_.interrupted);
  result.prompt_seconds = seconds_since(start);
  slots_[sequence]->decode_start = Clock::now();
  if (logits) {
    take(sequence, *logits);
  } else {
    slots_[sequence]->writer.interrupt();
    end(sequence);
  }
}

void Batch::take(size_t sequence, const Tensor& logits) {
  Slot& slot = *slots_[sequence];
  emit(slot.index, slot.writer.take(logits));
  if (slot.writer.stopped() == Stopped::not_yet && hooks_.interrupted())
    emit(slot.index, slot.writer.interrupt());
  if (slot.writer.stopped() != Stopped::not_yet) end(sequence);
}

// Feeds the last token of every text that goes on.
void Batch::step() {
  std::vector<Decoder::Piece> pieces;
  for (size_t sequence = 0; sequence < slots_.size(); ++sequence) {
    if (!slots_[sequence]) continue;
    const auto s = static_cast<int64_t>(sequence);
    make_room(decoder_, decoder_.length(s) + 1, longest_);
    pieces.push_back({s, std::span(slots_[sequence]->writer.ids()).last(1)});
  }
  const Tensor logits = decoder_.step(ctx_, pieces);
  for (size_t row = 0; row < pieces.size(); ++row) {
    const auto sequence = static_cast<size_t>(pieces[row].sequence);
    ++results_[slots_[sequence]->index].decode_steps;
    const auto r = static_cast<int64_t>(row);
    take(sequence, logits.row_range(r, r + 1));
  }
}

void Batch::emit(size_t index, const std::string& text) {
  if (text.empty()) return;
  results_[index].text += text;
  hooks_.on_text(index, text);
}

void Batch::end(size_t sequence) {
  const std::unique_ptr<Slot> slot = std::move(slots_[sequence]);
  Generation& result = results_[slot->index];
  result.new_tokens = slot->writer.new_tokens();
  result.stopped = slot->writer.stopped();
  result.decode_seconds = seconds_since(slot->decode_start);
  hooks_.on_done(slot->index, result);
}

}  // namespace

void check_belongs(const Tokenizer& tokenizer, const ModelConfig& config) {
  if (tokenizer.vocab_size() > config.vocab_size)
    fail("the tokenizer has {} tokens, the model {}: they do not belong together",
         tokenizer.vocab_size(), config.vocab_size);
}

std::vector<Generation> generate(Context& ctx, const Zaya& model, const Tokenizer& tokenizer,
                                 const std::vector<std::vector<int32_t>>& prompts,
                                 const GenerateOptions& options, const GenerateHooks& hooks) {
  check_belongs(tokenizer, model.config());
  const int64_t longest = model.config().max_position_embeddings;
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].empty())
      fail("prompt {}: this tokenizer has no token to begin with: give some text", i + 1);
    if (static_cast<int64_t>(prompts[i].size()) >= longest)
      fail("prompt {}: wanted fewer tokens than the model's {} (max_position_embeddings), got {}",
           i + 1, longest, prompts[i].size());
  }
  if (prompts.empty()) return {};
  return Batch(ctx, model, tokenizer, prompts, options, hooks).run();
}

}  // namespace zaya
