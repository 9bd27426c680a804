#include "data/hf_tokenizer.h"

#include "core/error.h"
#include "data/hf_added_tokens.h"
#include "data/hf_bpe.h"
#include "data/hf_decoder.h"
#include "data/hf_file.h"
#include "data/hf_normalizer.h"
#include "data/hf_post_processor.h"
#include "data/hf_pretokenizer.h"
#include "data/hf_special_ids.h"
#include "data/hf_unicode.h"
#include "data/hf_vocabulary.h"
#include "data/utf8.h"

namespace zaya {
namespace {

const Json& member(const HfFile& file, const char* key) {
  static const Json null;
  const Json* value = JsonObject(file.document, file.place).find(key);
  return value ? *value : null;
}

// What tokenizer.json describes, ready to use.
struct HfParts {
  explicit HfParts(const HfFile& file)
      : vocabulary(file),
        normalizer(member(file, "normalizer"), file.place + ": normalizer"),
        added(file, vocabulary, normalizer),
        pre_tokenizer(member(file, "pre_tokenizer"), file.place + ": pre_tokenizer"),
        bpe(file, vocabulary),
        decoder(member(file, "decoder"), file.place + ": decoder") {}

  HfVocabulary vocabulary;
  HfNormalizer normalizer;
  HfAddedTokens added;
  HfPreTokenizer pre_tokenizer;
  HfBpe bpe;
  HfDecoder decoder;
};

class HfTokenizer final : public Tokenizer {
 public:
  HfTokenizer(std::string bytes, const HfFile& file, HfConfigFile config);

  std::vector<int32_t> encode(std::string_view text) const override { return ids_of(text, false); }
  std::vector<int32_t> encode_literal(std::string_view text) const override {
    return ids_of(text, true);
  }
  std::vector<int32_t> encode_document(std::string_view text) const override;
  std::unique_ptr<IdDecoder> decoder(bool continues, SpecialTokens special) const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(bytes_.size()); }
  std::optional<int32_t> bos() const override { return special_ids_.bos; }
  std::optional<int32_t> eos() const override { return special_ids_.eos; }
  std::optional<int32_t> token_id(std::string_view content) const override;
  std::string name() const override { return "tokenizer.json (bpe)"; }
  bool exact() const override { return false; }
  std::string file_name() const override { return "tokenizer.json"; }
  const std::string& file_bytes() const override { return file_; }
  const std::string& config_bytes() const override { return config_; }

  // What the decoder gets for a token; empty where the ids have a gap.
  std::string_view content(int32_t id) const;
  bool is_special(int32_t id) const { return special_[static_cast<size_t>(id)]; }

 private:
  void size_tables(const HfFile& file);
  void fill_bytes();
  std::vector<int32_t> ids_of(std::string_view text, bool literal) const;
  void append_section(std::string_view text, bool first, bool literal, HfBpe::Scratch& scratch,
                      std::vector<int32_t>& ids) const;

  std::string file_;
  std::string config_;
  HfParts parts_;
  HfPostProcessor post_processor_;
  HfSpecialIds special_ids_;
  std::vector<const HfAddedToken*> added_;  // of every id, null for those of the model alone
  std::vector<bool> special_;               // of every id
};

class HfIdDecoder final : public IdDecoder {
 public:
  HfIdDecoder(const HfTokenizer& tokenizer, HfDecoding decoding, SpecialTokens special)
      : tokenizer_(tokenizer), decoding_(std::move(decoding)), special_(special) {}
  void push(int32_t id, std::string& text) override {
    tokenizer_.bytes_of(id);  // refuses ids outside the vocabulary
    if (special_ == SpecialTokens::left_out && tokenizer_.is_special(id)) return;
    const std::string_view content = tokenizer_.content(id);
    if (!content.empty()) decoding_.push(content, text);
  }
  void finish(std::string& text) override { decoding_.finish(text); }

 private:
  const HfTokenizer& tokenizer_;
  HfDecoding decoding_;
  SpecialTokens special_;
};

HfTokenizer::HfTokenizer(std::string bytes, const HfFile& file, HfConfigFile config)
    : file_(std::move(bytes)), parts_(file) {
  size_tables(file);
  post_processor_ = HfPostProcessor(member(file, "post_processor"), file.place + ": post_processor",
                                    static_cast<int32_t>(added_.size()));
  special_ids_ = find_special_ids(config, post_processor_, parts_.added,
                                  [this](std::string_view text) { return token_id(text); });
  config_ = std::move(config.bytes);
  fill_bytes();
}

void HfTokenizer::size_tables(const HfFile& file) {
  constexpr size_t kFreeIds = 65536;
  const auto& tokens = parts_.added.tokens();
  auto size = static_cast<size_t>(parts_.vocabulary.size());
  const size_t limit = 2 * (size + tokens.size()) + kFreeIds;
  for (const HfAddedToken& token : tokens) size = std::max(size, static_cast<size_t>(token.id) + 1);
  if (size == 0) fail("{}: model.vocab: wanted tokens, got none", file.place);
  if (size > limit)
    fail("{}: added_tokens: wanted ids below {}, got {}", file.place, limit, size - 1);
  added_.resize(size);
  special_.resize(size);
  std::vector<int32_t> special;
  for (const HfAddedToken& token : tokens) {
    added_[static_cast<size_t>(token.id)] = &token;
    special_[static_cast<size_t>(token.id)] = token.special;
    if (token.special) special.push_back(token.id);
  }
  parts_.bpe.set_special(special);
}

void HfTokenizer::fill_bytes() {
  bytes_.resize(added_.size());
  HfDecoding decoding = parts_.decoder.start_bytes();
  for (size_t id = 0; id < bytes_.size(); ++id) {
    const std::string_view text = content(static_cast<int32_t>(id));
    if (special_[id] || text.empty()) continue;
    decoding.push(text, bytes_[id]);
    decoding.finish(bytes_[id]);
  }
}

std::string_view HfTokenizer::content(int32_t id) const {
  const auto i = static_cast<size_t>(id);
  if (added_[i]) return added_[i]->decoded;
  return id < parts_.vocabulary.size() ? parts_.vocabulary.content(id) : std::string_view();
}

std::optional<int32_t> HfTokenizer::token_id(std::string_view content) const {
  const HfAddedToken* token = parts_.added.find(content);
  return token ? std::optional(token->id) : parts_.vocabulary.find(content);
}

std::vector<int32_t> HfTokenizer::ids_of(std::string_view text, bool literal) const {
  std::string replaced;
  if (!is_utf8(text)) text = replaced = well_formed(text);
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 8);
  const auto scratch = parts_.bpe.take_scratch();
  for (const HfSection& section : parts_.added.plain().find(text, literal)) {
    if (section.id >= 0) {
      ids.push_back(section.id);
    } else {
      append_section(text.substr(section.begin, section.end - section.begin), section.begin == 0,
                     literal, *scratch, ids);
    }
  }
  return ids;
}

// Text without added tokens of the kind that is looked for before normalising.
void HfTokenizer::append_section(std::string_view text, bool first, bool literal,
                                 HfBpe::Scratch& scratch, std::vector<int32_t>& ids) const {
  std::string normal = parts_.normalizer.apply(text);
  const auto append = [&](std::string part, bool is_first) {
    const Pieces pieces = parts_.pre_tokenizer.apply(std::move(part), is_first);
    for (const Pieces::Piece& piece : pieces.pieces)
      parts_.bpe.encode(pieces.view(piece), literal, scratch, ids);
  };
  if (parts_.added.normalized().empty()) return append(std::move(normal), first);
  for (const HfSection& section : parts_.added.normalized().find(normal, literal)) {
    if (section.id >= 0) {
      ids.push_back(section.id);
    } else {
      append(normal.substr(section.begin, section.end - section.begin),
             first && section.begin == 0);
    }
  }
}

std::vector<int32_t> HfTokenizer::encode_document(std::string_view text) const {
  std::vector<int32_t> ids = post_processor_.before();
  const std::vector<int32_t> inner = encode(text);
  ids.insert(ids.end(), inner.begin(), inner.end());
  ids.insert(ids.end(), post_processor_.after().begin(), post_processor_.after().end());
  return ids;
}

std::unique_ptr<IdDecoder> HfTokenizer::decoder(bool continues, SpecialTokens special) const {
  return std::make_unique<HfIdDecoder>(*this, parts_.decoder.start(continues), special);
}

}  // namespace

std::unique_ptr<Tokenizer> make_hf_tokenizer(std::string bytes, std::string place,
                                             HfConfigFile config) {
  const HfFile file = parse_hf_file(bytes, std::move(place));
  return std::make_unique<HfTokenizer>(std::move(bytes), file, std::move(config));
}

std::unique_ptr<Tokenizer> make_hf_tokenizer(std::string bytes, std::string place) {
  return make_hf_tokenizer(std::move(bytes), std::move(place), {});
}

}  // namespace zaya
