#pragma once
// Text to token ids and back. For the byte tokenizer and for the SentencePiece models trained here
// decoding concatenates the bytes each id stands for, so text -> ids -> text is exact for any
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

// Whether special tokens (those that mark up a text, as <bos> does) are part of decoded text.
enum class SpecialTokens { left_out, shown };

// Ids to text as they come.
class IdDecoder {
 public:
  virtual ~IdDecoder() = default;
  // Appends the text that became certain with this id. Error for an id outside the vocabulary.
  virtual void push(int32_t id, std::string& text) = 0;
  // Appends what waited for more. What is pushed then continues the text.
  virtual void finish(std::string& text) = 0;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Never adds bos or eos. Safe to call from several threads.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  // With what the tokenizer puts around a document: bos in front, where it has one, or what the
  // post-processor of a tokenizer.json says.
  virtual std::vector<int32_t> encode_document(std::string_view text) const;
  // What looks like a special token is ordinary text: no text makes the id of one, except that of
  // the unknown token. For text from outside that must not forge the turns of a chat.
  virtual std::vector<int32_t> encode_literal(std::string_view text) const { return encode(text); }
  // The token with exactly this content, such as "<end_of_turn>".
  virtual std::optional<int32_t> token_id(std::string_view content) const;
  virtual int32_t vocab_size() const = 0;
  virtual std::optional<int32_t> bos() const = 0;
  virtual std::optional<int32_t> eos() const = 0;
  // "byte", "sentencepiece (bpe)" or "tokenizer.json (bpe)".
  virtual std::string name() const = 0;
  // Whether decode(encode(text)) == text for all bytes.
  virtual bool exact() const = 0;
  // The file that opens this tokenizer again when it lies in a folder.
  virtual std::string file_name() const = 0;
  virtual const std::string& file_bytes() const = 0;
  // The tokenizer_config.json that lay beside the file; empty where there was none.
  virtual const std::string& config_bytes() const;

  // The bytes an id stands for; none for special tokens. Error for an id outside the vocabulary.
  std::string_view bytes_of(int32_t id) const;
  int64_t byte_length(int32_t id) const { return static_cast<int64_t>(bytes_of(id).size()); }
  std::string decode(std::span<const int32_t> ids,
                     SpecialTokens special = SpecialTokens::left_out) const;
  // `continues`: there is text before the first id. The tokenizer must outlive the decoder.
  virtual std::unique_ptr<IdDecoder> decoder(bool continues,
                                             SpecialTokens special = SpecialTokens::left_out) const;
  // One line for people: name, vocabulary, special ids.
  std::string description() const;
  // True for models that put a space before the text; decode() removes it again.
  bool adds_leading_space() const { return adds_leading_space_; }

 protected:
  std::vector<std::string> bytes_;  // of every id
  bool adds_leading_space_ = false;
};

// The word "byte", a tokenizer.json, a SentencePiece .model file, or a folder that holds
// tokenizer.json, tokenizer.model or tokenizer.byte (the first of them that it does).
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& what);

// Ids 0..255 are the bytes, 256 is bos, 257 is eos.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

// A SentencePiece model (BPE or unigram) from the bytes of its file; `place` begins every error.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string bytes, std::string place);

// HF's tokenizer.json from the bytes of the file; `place` begins every error. See hf_tokenizer.h.
std::unique_ptr<Tokenizer> make_hf_tokenizer(std::string bytes, std::string place);

// Writes file_bytes() under file_name() into the folder, durably, and tokenizer_config.json where
// the tokenizer came with one.
void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& folder);

}  // namespace zaya
