#pragma once
// Several sequences side by side, as the decoder of one sequence allows it: one after the other.

#include <cstring>
#include <memory>

#include "infer/decoder.h"

namespace zaya {

class BatchDecoder {
 public:
  struct Piece {
    int64_t sequence;
    std::span<const int32_t> ids;
  };

  BatchDecoder(Zaya& model, int64_t sequences, int64_t capacity, int64_t max_chunk = 512)
      : vocab_size_(model.config().vocab_size) {
    for (int64_t i = 0; i < sequences; ++i)
      decoders_.push_back(std::make_unique<Decoder>(model, capacity, max_chunk));
  }
  void reset(int64_t sequence) { of(sequence).reset(); }
  void reserve(int64_t capacity) {
    for (auto& decoder : decoders_) decoder->reserve(capacity);
  }
  // Logits [pieces, V] f32 after the last token of each piece, valid until the next call.
  Tensor feed(Context& ctx, std::span<const Piece> pieces) {
    logits_.resize(pieces.size() * static_cast<size_t>(vocab_size_));
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Tensor row = of(pieces[i].sequence).feed(ctx, pieces[i].ids);
      std::memcpy(&logits_[i * static_cast<size_t>(vocab_size_)], row.data,
                  static_cast<size_t>(row.bytes()));
    }
    return Tensor(logits_.data(), DType::f32, {static_cast<int64_t>(pieces.size()), vocab_size_});
  }
  Tensor step(Context& ctx, std::span<const Piece> pieces) { return feed(ctx, pieces); }
  int64_t length(int64_t sequence) const { return decoders_[sequence]->length(); }
  int64_t capacity() const { return decoders_[0]->capacity(); }

 private:
  Decoder& of(int64_t sequence) { return *decoders_[static_cast<size_t>(sequence)]; }

  int64_t vocab_size_;
  std::vector<std::unique_ptr<Decoder>> decoders_;
  std::vector<float> logits_;
};

}  // namespace zaya
