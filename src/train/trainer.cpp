#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "data/batch_loader.h"
#include "ops/elementwise/elementwise.h"
#include "ops/router/choose_expert.h"
#include "optim/balancing.h"
#include "train/precision.h"
#include "train/run_folder.h"
#include "train/step_guard.h"
#include "train/train_checkpoint.h"
#include "train/validation.h"

namespace zaya {
namespace {

using Clock = std::chrono::steady_clock;

class Trainer {
 public:
  Trainer(const Recipe& recipe, const TrainOptions& options, TrainObserver& observer)
      : recipe_(recipe),
        observer_(observer),
        plan_(recipe),
        tokenizer_(open_tokenizer(recipe.tokenizer.path)),
        feed_(recipe, plan_, checked_vocab_size()),
        folder_(options.out),
        model_(recipe.model, resolve_precision(recipe.dtype), Gradients::allocate),
        optimizer_(model_.parameters(), recipe.optimizer),
        guard_(recipe.optimizer) {
    start(options.resume);
  }

  TrainResult run() {
    MetricsWriter metrics(folder_.path().string(), state_.step, recipe_.metrics.tensorboard);
    BatchLoader loader([this](int64_t step, Batch& batch) { return feed_.fill_step(step, batch); },
                       state_.step);
    bool stop = false;
    Batch batch;
    while (!stop && loader.next(batch)) {
      const StepMetrics step = take_step(batch);
      metrics.write(step);
      observer_.step(step);
      stop = observer_.stop_requested();
      const bool last = state_.step == plan_.total_steps();
      if (due(recipe_.validation.every, last)) report_validation(metrics);
      if (stop || last || due(recipe_.checkpoint.every, false)) save();
    }
    return {state_.step, state_.step == plan_.total_steps(), state_.skipped_steps, checkpoint_};
  }

 private:
  int32_t checked_vocab_size() const {
    if (tokenizer_->vocab_size() > recipe_.model.vocab_size)
      fail("recipe: model.vocab_size: wanted at least the tokenizer's {} tokens, got {}",
           tokenizer_->vocab_size(), recipe_.model.vocab_size);
    return static_cast<int32_t>(recipe_.model.vocab_size);
  }

  void start(const std::string& resume) {
    const ResumePoint point = choose_resume_point(folder_.path(), resume);
    for (const std::string& message : point.messages)
      observer_.message("passed over a damaged checkpoint, now named .damaged: " + message);
    if (!point.checkpoint) {
      model_.parameters().initialize(ctx_, recipe_.seed);
      state_.sample_digest = feed_.digest_of_steps(0);
    } else {
      state_ = load_checkpoint(ctx_, *point.checkpoint, recipe_, *tokenizer_, model_, optimizer_);
      guard_.restore(state_.norm_mean, state_.norm_count);
      check_digest(*point.checkpoint);
      checkpoint_ = *point.checkpoint;
      observer_.message(
          fmt::format("resuming after step {} from {}", state_.step, point.checkpoint->string()));
    }
    require_space_for_checkpoints();
    write_file_durably(folder_.path() / "recipe.toml", recipe_text(recipe_));
  }

  // A full disk is found now, and not at the third checkpoint after hours: there is room for those
  // the run will hold at once, one of them being written.
  void require_space_for_checkpoints() const {
    const int64_t steps_left = plan_.total_steps() - state_.step;
    const int64_t every = recipe_.checkpoint.every;
    const int64_t saves = (every > 0 ? steps_left / every : 0) + (steps_left > 0 ? 1 : 0);
    const auto existing = static_cast<int64_t>(list_checkpoints(folder_.path()).size());
    const int64_t more =
        std::min(saves, std::max<int64_t>(recipe_.checkpoint.keep + 1 - existing, 1));
    require_space(folder_.path(),
                  static_cast<uint64_t>(more) *
                      checkpoint_bytes(recipe_.model, recipe_.optimizer, *tokenizer_));
  }

  void check_digest(const fs::path& checkpoint) const {
    const uint64_t digest = feed_.digest_of_steps(state_.step);
    if (digest != state_.sample_digest)
      fail(
          "{}: this run would not have consumed the samples that the checkpoint's run consumed "
          "(digest {:016x}, got {:016x}): the token stores have changed; put the old ones back, or "
          "start a new run with another --out",
          checkpoint.string(), state_.sample_digest, digest);
  }

  // True at multiples of `every` steps, and at the last step; never when `every` is 0.
  bool due(int64_t every, bool last) const {
    return every > 0 && (last || state_.step % every == 0);
  }

  StepMetrics take_step(const Batch& batch) {
    const Clock::time_point begin = Clock::now();
    const StepInfo info = plan_.at(state_.step);
    model_.set_rotary_base(recipe_.phases[info.phase].rotary_base);
    clear_step();
    const double loss = accumulate(batch, recipe_.phases[info.phase]);
    const double norm = optimizer_.gradient_norm(ctx_);

    StepMetrics metrics;
    metrics.skip_reason = guard_.objection(loss, norm);
    metrics.skipped = !metrics.skip_reason.empty();
    metrics.learning_rate = recipe_.optimizer.muon_learning_rate * info.learning_rate_factor;
    if (metrics.skipped) {
      ++state_.skipped_steps;
      for (int64_t row = 0; row < info.rows; ++row)
        metrics.skipped_samples.push_back(info.rows_before + row);
    } else {
      optimizer_.set_balancing_gradients(choices_);
      optimizer_.update(ctx_, rates(info.learning_rate_factor), norm);
      guard_.accept(norm);
    }
    state_.sample_digest = extend_digest(state_.sample_digest, info.phase, batch.samples);
    state_.step += 1;
    state_.tokens += info.tokens();

    metrics.step = state_.step;
    metrics.tokens = state_.tokens;
    metrics.loss = loss;
    metrics.bits_per_byte = bits_per_byte(loss, batch);
    metrics.grad_norm = norm;
    metrics.skipped_steps = state_.skipped_steps;
    for (const std::vector<int64_t>& counts : choices_)
      metrics.expert_entropy.push_back(load_entropy(counts));
    metrics.tokens_per_second = static_cast<double>(info.tokens()) /
                                std::chrono::duration<double>(Clock::now() - begin).count();
    return metrics;
  }

  void clear_step() {
    fill_zero(ctx_, model_.parameters().flat_gradients());
    choices_.resize(static_cast<size_t>(recipe_.model.num_hidden_layers));
    for (std::vector<int64_t>& counts : choices_)
      counts.assign(static_cast<size_t>(recipe_.model.router_classes()), 0);
  }

  // Forward and backward over the step's rows, a micro-batch at a time. Returns the mean loss.
  double accumulate(const Batch& batch, const Phase& phase) {
    const double labels = static_cast<double>(std::max<int64_t>(batch.label_count, 1));
    double sum = 0;
    for (int64_t begin = 0; begin < batch.tokens(); begin += phase.micro_batch_tokens) {
      const int64_t end = std::min(begin + phase.micro_batch_tokens, batch.tokens());
      set_slice(batch, begin, end);
      sum += model_.forward_backward(ctx_, tokens_, static_cast<float>(1.0 / labels));
      for (size_t block = 0; block < choices_.size(); ++block)
        count_choices(ctx_,
                      Tensor(choices_[block].data(), DType::i64,
                             {static_cast<int64_t>(choices_[block].size())}),
                      model_.activations().blocks[block].experts.router.choice);
    }
    return sum / labels;
  }

  // Rows of a step end where sequences end, so a slice of whole rows is a slice of sequences.
  void set_slice(const Batch& batch, int64_t begin, int64_t end) {
    slice_offsets_.clear();
    for (int32_t offset : batch.cu_seqlens)
      if (offset >= begin && offset <= end)
        slice_offsets_.push_back(static_cast<int32_t>(offset - begin));
    const auto count = static_cast<size_t>(end - begin);
    tokens_.set(std::span(batch.ids).subspan(begin, count),
                std::span(batch.labels).subspan(begin, count), slice_offsets_);
  }

  double bits_per_byte(double loss, const Batch& batch) const {
    int64_t bytes = 0;
    for (int32_t label : batch.labels)
      if (label >= 0 && label < tokenizer_->vocab_size()) bytes += tokenizer_->byte_length(label);
    return bytes > 0 ? loss * static_cast<double>(batch.label_count) / std::log(2.0) /
                           static_cast<double>(bytes)
                     : 0;
  }

  LearningRates rates(double factor) const {
    const OptimizerConfig& o = recipe_.optimizer;
    const auto scaled = [&](double rate) { return static_cast<float>(rate * factor); };
    return {scaled(o.muon_learning_rate), scaled(o.adamw_learning_rate),
            scaled(o.embedding_learning_rate), scaled(o.router_learning_rate),
            static_cast<float>(o.balancing_learning_rate)};
  }

  void report_validation(MetricsWriter& writer) {
    const Phase& phase = recipe_.phases[plan_.at(state_.step - 1).phase];
    ValidationMetrics metrics =
        validate(ctx_, model_, *tokenizer_, feed_.validation(), phase, recipe_.validation.tokens);
    metrics.step = state_.step;
    metrics.tokens = state_.tokens;
    writer.write(metrics);
    observer_.validation(metrics);
  }

  void save() {
    state_.optimizer_updates = optimizer_.updates();
    state_.norm_mean = guard_.mean();
    state_.norm_count = guard_.count();
    checkpoint_ = save_checkpoint(folder_.path(), recipe_, *tokenizer_, model_, optimizer_, state_);
    prune_checkpoints(folder_.path(), recipe_.checkpoint.keep);
  }

  const Recipe& recipe_;
  TrainObserver& observer_;
  Context ctx_;
  StepPlan plan_;
  std::unique_ptr<Tokenizer> tokenizer_;
  DataFeed feed_;
  RunFolder folder_;
  Zaya model_;
  Optimizer optimizer_;
  StepGuard guard_;
  TrainState state_;
  fs::path checkpoint_;

  TokenBatch tokens_;
  std::vector<int32_t> slice_offsets_;
  std::vector<std::vector<int64_t>> choices_;  // of each block, this step's counts a class
};

}  // namespace

int64_t recipe_activation_bytes(const Recipe& recipe, DType compute) {
  int64_t most = 0;
  for (const Phase& phase : recipe.phases) {
    const int64_t tokens = std::min(phase.micro_batch_tokens, phase.batch_tokens);
    most = std::max(most,
                    Zaya::activation_bytes(recipe.model, compute, tokens, tokens / phase.seq_len));
  }
  return most;
}

TrainResult train(const Recipe& recipe, const TrainOptions& options, TrainObserver& observer) {
  return Trainer(recipe, options, observer).run();
}

}  // namespace zaya
