#pragma once
// The descriptions of a recipe's tables (core/fields.h): each key said once.

#include "train/recipe.h"

namespace zaya {

template <class V>
void describe(V& v, ModelConfig& c) {
  v.field("vocab_size", c.vocab_size, "V, at least the tokenizer's", at_least(2));
  v.field("hidden_size", c.hidden_size, "D, width of the residual stream", at_least(1));
  v.field("num_hidden_layers", c.num_hidden_layers, "blocks, each attention and experts",
          at_least(1));
  v.field("num_attention_heads", c.num_attention_heads, "query heads", at_least(1));
  v.field("num_key_value_heads", c.num_key_value_heads, "key heads; divides the query heads",
          at_least(1));
  v.field("head_dim", c.head_dim, "size of a head", at_least(1));
  v.field("cca_time0", c.cca_time0, "taps of the depthwise convolution", at_least(1));
  v.field("cca_time1", c.cca_time1, "taps of the grouped convolution", at_least(1));
  v.field("num_experts", c.num_experts, "E, not counting the skip slot", at_least(1));
  v.field("moe_intermediate_size", c.moe_intermediate_size, "I, an expert's inner width",
          at_least(1));
  v.field("router_hidden_size", c.router_hidden_size, "R, the router's width", at_least(1));
  v.field("rms_norm_eps", c.rms_norm_eps, "epsilon of every RMS norm", greater_than(0));
  v.field("tie_word_embeddings", c.tie_word_embeddings, "the head is the embedding table");
  v.field("partial_rotary_factor", c.partial_rotary_factor, "share of a head that rotates",
          between(0, 1));
  v.field("rope_theta", c.rope_theta, "rotary base of full attention; a phase may set its own",
          greater_than(0));
  v.field("rope_theta_sliding", c.rope_theta_sliding, "rotary base of sliding attention",
          greater_than(0));
  v.field("sliding_window", c.sliding_window,
          "W: in a sliding block a token sees itself and W - 1 before it", at_least(0));
  v.field("sliding_layers", c.sliding_layers,
          "which blocks slide, a pattern repeated over the blocks; empty: none");
  v.field("max_position_embeddings", c.max_position_embeddings, "longest sequence", at_least(1));
  v.field("initializer_range", c.initializer_range, "deviation of the matrices' start values",
          greater_than(0));
}

template <class V>
void describe(V& v, TokenizerConfig& c) {
  v.field("path", c.path, "a SentencePiece .model file, a folder that holds one, or the word byte",
          not_empty());
}

template <class V>
void describe(V& v, DataSource& c) {
  v.field("name", c.name, "what mixtures and metrics call it", not_empty());
  v.field("path", c.path, "Megatron files, without .bin and .idx", not_empty());
  v.field("weight", c.weight, "share of the tokens, relative to the other sources", at_least(0));
  v.field("holdout_every", c.holdout_every,
          "every so many documents one is kept from training, for validation; 0: none is",
          Check{"0 or at least 2", [](double n) { return n == 0 || n >= 2; }});
}

template <class V>
void describe(V& v, ValidationSource& c) {
  v.field("name", c.name, "what metrics call it", not_empty());
  v.field("path", c.path, "Megatron files, without .bin and .idx", not_empty());
}

template <class V>
void describe(V& v, ValidationConfig& c) {
  v.field("every", c.every, "steps from one validation to the next, and one at the end; 0: never",
          at_least(0));
  v.field("tokens", c.tokens, "tokens of each source to validate on; 0: all", at_least(0));
  v.field("sources", c.sources, "Token stores that are only validated on");
}

template <class V>
void describe(V& v, Phase& c) {
  v.field("name", c.name, "what messages call it", not_empty());
  v.field("tokens", c.tokens, "length in tokens, rounded up to a whole step", between(0, 1e16));
  v.field("steps", c.steps, "or: length in steps", between(0, 1e9));
  v.field("seq_len", c.seq_len, "tokens of a row", multiple_of(64));
  v.field("rotary_base", c.rotary_base, "rotary base of full attention; 0: the model's rope_theta",
          at_least(0));
  v.field("batch_tokens", c.batch_tokens, "tokens of a step over all processes", between(1, 1e9));
  v.field("batch_tokens_start", c.batch_tokens_start,
          "tokens of the phase's first step, growing to batch_tokens over ramp_tokens; 0: no ramp",
          at_least(0));
  v.field("ramp_tokens", c.ramp_tokens, "tokens over which the batch grows", between(0, 1e16));
  v.field("micro_batch_tokens", c.micro_batch_tokens,
          "most tokens whose activations are held at once; a step is split accordingly; 0: a whole "
          "step",
          at_least(0));
  v.field("learning_rate_factor", c.learning_rate_factor,
          "multiplies every learning rate in this phase", greater_than(0));
  v.field("restart_schedule", c.restart_schedule,
          "the schedule ends before this phase and starts anew, warm-up included");
  v.field("mixture", c.mixture, "source = weight, for this phase; empty: the sources' weights",
          at_least(0));
  v.field("mask_documents", c.mask_documents,
          "convolutions and attention do not look across documents packed into a row");
}

template <class V>
void describe(V& v, CheckpointConfig& c) {
  v.field("every", c.every, "steps from one checkpoint to the next; 0: only at the end",
          at_least(0));
  v.field("keep", c.keep, "checkpoints to keep", at_least(1));
}

template <class V>
void describe(V& v, MetricsConfig& c) {
  v.field("tensorboard", c.tensorboard, "write TensorBoard event files beside metrics.jsonl");
  v.field("progress_seconds", c.progress_seconds,
          "seconds from one progress line to the next where standard output is not a terminal",
          at_least(0));
}

template <class V>
void describe(V& v, Recipe& c) {
  v.field("name", c.name, "what the run is called", not_empty());
  v.field("seed", c.seed, "start values and data order are functions of it");
  v.field("max_steps", c.max_steps,
          "training stops here; phases and schedules stay as they are; 0: at their end",
          at_least(0));
  v.field(
      "dtype", c.dtype,
      "arithmetic of the matrix products; auto is bf16 where the machine multiplies bf16 (AVX-512 "
      "BF16), and f32 elsewhere, where bf16 would save memory but no time");
  v.field("threads", c.threads, "0: as many as the machine has; results do not depend on it",
          between(0, 4096));
  v.field("model", c.model, "The shape of the model, in the names of HF's config.json");
  v.field("tokenizer", c.tokenizer, "The tokenizer that made the token stores");
  v.field("data", c.data, "A source of training data", not_empty());
  v.field("validation", c.validation, "Validation during training");
  v.field("phases", c.phases, "A stretch of training with one sequence length and one mixture",
          not_empty());
  v.field("optimizer", c.optimizer, "Optimizers and schedule");
  v.field("checkpoint", c.checkpoint, "Checkpoints; there is always one at the end");
  v.field("metrics", c.metrics, "Metrics and progress");
}

}  // namespace zaya
