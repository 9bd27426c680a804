#pragma once
// What one source feeds to training or to validation: the documents of a store, or all but every
// N-th, or every N-th only, as one stream of tokens.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/token_store.h"

namespace zaya {

enum class StreamPart { all, kept, held_out };

class TokenStream {
 public:
  // With `kept` and `held_out`, documents N-1, 2N-1, 3N-1, ... (counted from 0) are held out, where
  // N = holdout_every >= 2; with `all` holdout_every is 0. `name` is the source's, for errors.
  TokenStream(std::shared_ptr<const TokenStore> store, std::string name, int32_t vocab_size,
              StreamPart part = StreamPart::all, int64_t holdout_every = 0);

  const std::string& name() const { return name_; }
  int64_t token_count() const { return tokens_; }
  int64_t document_count() const { return documents_; }
  // Where the stream's k-th document begins in the stream.
  int64_t document_begin(int64_t k) const;
  // The document that holds a token of the stream.
  int64_t document_at(int64_t position) const;
  // The number in the store of the stream's k-th document.
  int64_t store_document(int64_t k) const;

  // Tokens [begin, begin + out.size()) of the stream. `starts` gets the positions (relative to
  // begin, in order) of those that begin a document. Error, naming file and position, for an id
  // outside the vocabulary.
  void copy(int64_t begin, std::span<int32_t> out, std::vector<int64_t>& starts) const;

 private:
  std::shared_ptr<const TokenStore> store_;
  std::string name_;
  int32_t vocab_size_;
  StreamPart part_;
  int64_t every_;
  int64_t documents_ = 0;
  int64_t tokens_ = 0;
  std::vector<int64_t> held_before_;  // [i]: tokens of the first i held-out documents
};

}  // namespace zaya
