#pragma once
// Text to token ids and back. Decoding concatenates the bytes each id stands for, so for the byte
// tokenizer and for the SentencePiece models trained here text -> ids -> text is exact for any
// bytes: newlines, double spaces, control characters and invalid UTF-8 included.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zaya {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Never adds bos or eos. Safe to call from several threads.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  // What a model reads at the start of a text: bos, where there is one, and the text.
  virtual std::vector<int32_t> encode_document(std::string_view text) const;
  // The text of special tokens, written in `text`, is ordinary text: nobody forges a turn.
  virtual std::vector<int32_t> encode_literal(std::string_view text) const { return encode(text); }
  // The id of the token that is spelt like this.
  virtual std::optional<int32_t> token_id(std::string_view content) const;
  virtual int32_t vocab_size() const = 0;
  virtual std::optional<int32_t> bos() const = 0;
  virtual std::optional<int32_t> eos() const = 0;
  // "byte", or "sentencepiece (bpe)".
  virtual std::string name() const = 0;
  // Whether decode(encode(text)) == text for all bytes.
  virtual bool exact() const = 0;
  // The file that opens this tokenizer again when it lies in a folder.
  virtual std::string file_name() const = 0;
  virtual const std::string& file_bytes() const = 0;

  // The bytes an id stands for; none for special tokens. Error for an id outside the vocabulary.
  std::string_view bytes_of(int32_t id) const;
  int64_t byte_length(int32_t id) const { return static_cast<int64_t>(bytes_of(id).size()); }
  std::string decode(std::span<const int32_t> ids) const;
  // One line for people: name, vocabulary, special ids.
  std::string description() const;
  // True for models that put a space before the text; decode() removes it again.
  bool adds_leading_space() const { return adds_leading_space_; }

 protected:
  std::vector<std::string> bytes_;  // of every id
  bool adds_leading_space_ = false;
};

// The word "byte", a SentencePiece .model file, or a folder that holds tokenizer.model (or
// tokenizer.byte, which is what a folder with the byte tokenizer holds).
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& what);

// Ids 0..255 are the bytes, 256 is bos, 257 is eos.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

// A SentencePiece model (BPE or unigram) from the bytes of its file; `place` begins every error.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string bytes, std::string place);

// Writes file_bytes() under file_name() into the folder, durably.
void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& folder);

}  // namespace zaya
