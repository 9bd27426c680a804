#pragma once
// Runs a model over a growing sequence, each token once: keys, values, the convolutions' last rows
// and the last delayed value are remembered per block. T new tokens, V vocabulary.

#include <span>
#include <vector>

#include "model/zaya.h"

namespace zaya {

class Decoder {
 public:
  // Memory for a sequence of up to `capacity` tokens, run at most `max_chunk` at a time. The model
  // must outlive the decoder.
  Decoder(Zaya& model, int64_t capacity, int64_t max_chunk = 256);

  // Forgets everything: the next token is the first.
  void reset();
  // Makes room for a longer sequence, keeping what is remembered.
  void reserve(int64_t capacity);
  // Runs the next tokens, at least one and no more than fit the capacity; ids in [0, vocab_size).
  // Returns the logits [1, V] f32 after the last one, valid until the next call.
  Tensor feed(Context& ctx, std::span<const int32_t> ids);

  int64_t length() const { return length_; }
  int64_t capacity() const { return capacity_; }
  // Bytes of caches and buffers.
  int64_t bytes() const;

 private:
  // What one chunk of T tokens leaves; nothing of it outlives the chunk.
  struct Work {
    Tensor x;              // [T, D] f32
    BlockSaved blocks[2];  // blocks take turns: one's output is the next one's input
    HeadSaved head;
    Tensor logits;  // [1, V]
  };
  void plan_memories(Arena& arena);
  Work plan_work(Arena& arena, int64_t T) const;
  void run_chunk(Context& ctx, std::span<const int32_t> ids);

  Zaya& model_;
  int64_t capacity_;
  int64_t max_chunk_;
  int64_t length_ = 0;
  Arena memory_, work_memory_, scratch_;
  std::vector<AttentionMemory> memories_;  // a block each
  RotaryTables full_, sliding_;
  Work work_;
  TokenBatch batch_;
};

}  // namespace zaya
