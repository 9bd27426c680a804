#include "data/token_stream.h"

#include <algorithm>

#include "core/error.h"

namespace zaya {

TokenStream::TokenStream(std::shared_ptr<const TokenStore> store, std::string name,
                         int32_t vocab_size, StreamPart part, int64_t holdout_every)
    : store_(std::move(store)),
      name_(std::move(name)),
      vocab_size_(vocab_size),
      part_(part),
      every_(holdout_every) {
  const int64_t all = store_->document_count();
  if (part_ == StreamPart::all) {
    ZAYA_REQUIRE(every_ == 0);
    documents_ = all;
    tokens_ = store_->token_count();
    return;
  }
  if (every_ < 2) fail("source {}: holdout_every: wanted 2 or more, got {}", name_, every_);
  const int64_t held = all / every_;
  held_before_.reserve(static_cast<size_t>(held) + 1);
  held_before_.push_back(0);
  for (int64_t k = 0; k < held; ++k) {
    const int64_t d = (k + 1) * every_ - 1;
    held_before_.push_back(held_before_.back() + store_->document_begin(d + 1) -
                           store_->document_begin(d));
  }
  const bool kept = part_ == StreamPart::kept;
  documents_ = kept ? all - held : held;
  tokens_ = kept ? store_->token_count() - held_before_.back() : held_before_.back();
}

int64_t TokenStream::store_document(int64_t k) const {
  ZAYA_REQUIRE(k >= 0 && k < documents_);
  if (part_ == StreamPart::all) return k;
  if (part_ == StreamPart::held_out) return (k + 1) * every_ - 1;
  return k / (every_ - 1) * every_ + k % (every_ - 1);
}

int64_t TokenStream::document_begin(int64_t k) const {
  if (k == documents_) return tokens_;
  if (part_ == StreamPart::held_out) return held_before_[static_cast<size_t>(k)];
  const int64_t d = store_document(k);
  const int64_t begin = store_->document_begin(d);
  return part_ == StreamPart::all ? begin : begin - held_before_[static_cast<size_t>(d / every_)];
}

int64_t TokenStream::document_at(int64_t position) const {
  ZAYA_REQUIRE(position >= 0 && position < tokens_);
  // The last document that begins at or before the position: empty documents never hold it.
  int64_t low = 0;
  int64_t high = documents_;  // document_begin(low) <= position < document_begin(high)
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (document_begin(middle) <= position ? low : high) = middle;
  }
  return low;
}

void TokenStream::copy(int64_t begin, std::span<int32_t> out, std::vector<int64_t>& starts) const {
  const int64_t count = static_cast<int64_t>(out.size());
  ZAYA_REQUIRE(begin >= 0 && begin + count <= tokens_);
  starts.clear();
  if (count == 0) return;
  int64_t k = document_at(begin);
  for (int64_t done = 0; done < count; ++k) {
    const int64_t first = document_begin(k);
    const int64_t last = std::min(document_begin(k + 1), begin + count);
    const int64_t from = begin + done;
    if (last == from) continue;  // an empty document
    if (first == from) starts.push_back(done);
    const std::span<int32_t> piece =
        out.subspan(static_cast<size_t>(done), static_cast<size_t>(last - from));
    const int64_t at = store_->document_begin(store_document(k)) + from - first;
    store_->copy(at, piece);
    for (size_t i = 0; i < piece.size(); ++i) {
      if (piece[i] < 0 || piece[i] >= vocab_size_) {
        fail("{}: token {}: wanted an id of 0 to {}, got {}", store_->bin_path().string(),
             at + static_cast<int64_t>(i), vocab_size_ - 1, piece[i]);
      }
    }
    done += last - from;
  }
}

}  // namespace zaya
