#include "data/pack.h"

#include <exception>

#include "core/error.h"
#include "data/token_store.h"

namespace zaya {

namespace {

// Text tokenised at a time: enough to keep every core busy.
constexpr size_t kGroupBytes = size_t{4} << 20;

int32_t special_id(std::optional<int32_t> id, const char* what, const Tokenizer& tokenizer) {
  if (!id) fail("tokenizer ({}): wanted a {} token, got none", tokenizer.name(), what);
  return *id;
}

class Packer {
 public:
  Packer(const Tokenizer& tokenizer, const PackOptions& options, TokenStoreWriter& writer)
      : tokenizer_(tokenizer), writer_(writer) {
    if (options.bos) before_ = {special_id(tokenizer.bos(), "bos", tokenizer)};
    if (options.eos) after_ = {special_id(tokenizer.eos(), "eos", tokenizer)};
  }

  void add(std::string document) {
    group_bytes_ += document.size();
    group_.push_back(std::move(document));
    if (group_bytes_ >= kGroupBytes) flush();
  }

  void flush() {
    std::vector<std::vector<int32_t>> ids(group_.size());
    std::exception_ptr error;
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < group_.size(); ++i) {
      try {
        ids[i] = encode(group_[i]);
      } catch (...) {
#pragma omp critical(zaya_pack_error)
        error = std::current_exception();
      }
    }
    if (error) std::rethrow_exception(error);
    for (const auto& document : ids) writer_.add_document(document);
    summary_.documents += static_cast<int64_t>(group_.size());
    summary_.bytes += static_cast<int64_t>(group_bytes_);
    summary_.tokens = writer_.tokens();
    group_.clear();
    group_bytes_ = 0;
  }

  const PackSummary& summary() const { return summary_; }

 private:
  std::vector<int32_t> encode(const std::string& document) const {
    std::vector<int32_t> ids = tokenizer_.encode(document);
    ids.insert(ids.begin(), before_.begin(), before_.end());
    ids.insert(ids.end(), after_.begin(), after_.end());
    return ids;
  }

  const Tokenizer& tokenizer_;
  TokenStoreWriter& writer_;
  std::vector<int32_t> before_;
  std::vector<int32_t> after_;
  std::vector<std::string> group_;
  size_t group_bytes_ = 0;
  PackSummary summary_;
};

}  // namespace

PackSummary pack(const std::vector<std::string>& inputs, const Tokenizer& tokenizer,
                 const std::string& prefix, const PackOptions& options,
                 const std::function<void(const PackProgress&)>& progress) {
  TextReader reader(inputs, options.text);
  TokenStoreWriter writer(prefix, tokenizer.vocab_size());
  Packer packer(tokenizer, options, writer);
  std::string document;
  while (reader.next(document)) {
    packer.add(std::move(document));
    progress({reader.bytes_read(), reader.total_bytes(), packer.summary()});
  }
  packer.flush();
  if (packer.summary().documents == 0) fail("{}: wanted text, got no documents", inputs[0]);
  writer.finish();
  progress({reader.total_bytes(), reader.total_bytes(), packer.summary()});
  return packer.summary();
}

}  // namespace zaya
