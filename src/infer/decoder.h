#pragma once
// Runs a model over growing sequences, each token once: keys, values, the convolutions' last rows
// and the last delayed value are remembered per block and sequence. V vocabulary, D hidden.

#include <span>
#include <vector>

#include "model/zaya.h"

namespace zaya {

class Decoder {
 public:
  // The next tokens of a sequence.
  struct Piece {
    int64_t sequence = 0;
    std::span<const int32_t> ids;
  };

  // Memory for `sequences` sequences of up to `capacity` tokens each, run at most `max_chunk`
  // tokens at a time. The model must outlive the decoder.
  Decoder(const Zaya& model, int64_t sequences, int64_t capacity, int64_t max_chunk = 512);

  // Forgets a sequence: its next token is its first.
  void reset(int64_t sequence);
  // Makes room for longer sequences, keeping what is remembered.
  void reserve(int64_t capacity);

  // Runs prompts: the next tokens of some sequences, each named once, none empty, none beyond the
  // capacity; ids in [0, V). Returns the logits [pieces, V] f32 after the last token of each, valid
  // until the next call. A token's bits depend on its own sequence alone: not on the other pieces,
  // nor on how a prompt is cut into calls.
  Tensor feed(Context& ctx, std::span<const Piece> pieces);
  // The same for tokens that were just generated, by kernels for single rows: much faster for few
  // tokens, with other rounding.
  Tensor step(Context& ctx, std::span<const Piece> pieces);

  int64_t length(int64_t sequence) const { return lengths_[static_cast<size_t>(sequence)]; }
  int64_t capacity() const { return capacity_; }
  // Bytes of caches and buffers.
  int64_t bytes() const;

 private:
  // What one chunk of T tokens of S sequences leaves; nothing of it outlives the chunk.
  struct Work {
    Tensor x;              // [T, D] f32
    BlockSaved blocks[2];  // blocks take turns: one's output is the next one's input
    HeadSaved head;
    Tensor conv_rows;      // [S, P, C] A, of the block at work
    Tensor delayed_value;  // [S, 1, nk d / 2] A
  };
  // A piece's part in a chunk.
  struct Part {
    int64_t sequence;
    Continuation tokens;
    int64_t finishes = -1;  // the piece whose last token is among them
  };

  void plan_memories(Arena& arena);
  Work plan_work(Arena& arena, int64_t T, int64_t S) const;
  void reserve_work(int64_t T, int64_t S);
  Tensor run(Context& ctx, std::span<const Piece> pieces);
  void run_chunk(Context& ctx, std::span<const Part> parts);
  AttentionMemory recall(int64_t block, std::span<const Part> parts) const;
  void remember(int64_t block, std::span<const Part> parts) const;

  const Zaya& model_;
  int64_t sequences_, capacity_, max_chunk_;
  std::vector<int64_t> lengths_;
  Arena memory_, work_memory_, scratch_, output_memory_;
  std::vector<AttentionMemory> memories_;  // a block each, of all sequences
  RotaryTables full_, sliding_;
  int64_t work_tokens_ = 0, work_sequences_ = 0;  // what work_memory_ can hold
  Work work_;
  Tensor last_h_;  // [pieces, D] A, the normed residual stream of each piece's last token
  Tensor logits_;  // [pieces, V]
  TokenBatch batch_;
  std::vector<Part> parts_;
  std::vector<Continuation> continuations_;
};

}  // namespace zaya
