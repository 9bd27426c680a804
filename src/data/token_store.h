#pragma once
// Tokenised documents as Megatron .bin/.idx files, bit for bit. PREFIX.bin holds the tokens one
// after another; PREFIX.idx, all little endian and unaligned:
//   "MMIDIDX\0\0"  u64 version 1  u8 dtype code  u64 S sequences  u64 D + 1
//   i32 length of each sequence [S]   i64 byte offset of each in .bin [S]
//   i64 first sequence of each document, and S at the end [D + 1]

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/file.h"

namespace zaya {

// Reads a store of any tool. The files are hostile until checked: opening checks every length,
// offset and document index against the sizes of the files (Error: file, wanted, got), so that
// reading cannot leave them. Token ids are checked where a vocabulary is known (TokenStream).
class TokenStore {
 public:
  // PREFIX, PREFIX.bin or PREFIX.idx.
  explicit TokenStore(const std::string& prefix);

  int64_t token_count() const { return tokens_; }
  int64_t document_count() const { return documents_; }
  int64_t sequence_count() const { return sequences_; }
  DType dtype() const { return dtype_; }
  const fs::path& bin_path() const { return bin_.path(); }

  // A sum that changes with the store: over the whole .idx, and over blocks spread evenly over the
  // .bin (all of it up to 4 MiB).
  uint64_t fingerprint() const;

  // Where document d begins in the stream of all tokens; document_begin(document_count()) is
  // token_count(). Documents may be empty.
  int64_t document_begin(int64_t d) const;
  // Tokens [begin, begin + out.size()) as int32. Ids that do not fit int32 come out as -1.
  void copy(int64_t begin, std::span<int32_t> out) const;

 private:
  void read_header();
  void check_sequences() const;
  void check_documents() const;
  int64_t sequence_begin(int64_t s) const;  // in tokens
  template <class T>
  T load(uint64_t offset) const;

  MappedFile idx_;
  MappedFile bin_;
  DType dtype_ = DType::u16;
  int64_t sequences_ = 0;
  int64_t documents_ = 0;
  int64_t tokens_ = 0;
  uint64_t pointers_at_ = 0;  // byte offsets inside .idx
  uint64_t documents_at_ = 0;
};

// Writes a store: one sequence a document. Tokens are uint16 for vocabularies of up to 65536 ids,
// otherwise int32. The files appear when finish() is called, the .idx last: an interrupted run
// leaves no .idx, or the one that was there before beside its .bin.
class TokenStoreWriter {
 public:
  // Error when the folder cannot be written. vocab_size bounds the ids.
  TokenStoreWriter(const std::string& prefix, int32_t vocab_size);

  void add_document(std::span<const int32_t> ids);
  void finish();

  int64_t documents() const { return static_cast<int64_t>(lengths_.size()); }
  int64_t tokens() const { return tokens_; }

 private:
  std::string prefix_;
  int32_t vocab_size_;
  DType dtype_;
  DurableFile bin_;
  DurableFile idx_;
  std::vector<int32_t> lengths_;
  std::vector<uint16_t> narrow_;  // reused by add_document
  int64_t tokens_ = 0;
};

}  // namespace zaya
