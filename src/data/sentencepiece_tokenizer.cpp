// Tokenizers from SentencePiece models. The library encodes; decoding is our own table, because the
// library's decoder replaces byte pieces that form no UTF-8.

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>

#include "core/error.h"
#include "core/json.h"
#include "data/quiet_sentencepiece.h"
#include "data/sentencepiece_model.h"
#include "data/tokenizer.h"
#include "data/utf8.h"

namespace zaya {

namespace {

// Words longer than this are not remembered.
constexpr size_t kMaxCachedWord = 64;
constexpr size_t kMaxCachedWords = size_t{1} << 16;
// Spaces, newlines, controls, invalid bytes, forms that NFKC would change, the space mark itself.
constexpr std::string_view kProbe =
    "  a \n\n b\t\x01\xff\xc3 12 \xef\xac\x81\xe2\x91\xa0 e\xcc\x81 \xe2\x96\x81.\r\n ";

int32_t byte_value(const SentencePieceModel::Piece& piece, std::string_view place) {
  for (int byte = 0; byte < 256; ++byte) {
    if (piece.text == fmt::format("<0x{:02X}>", byte)) return byte;
  }
  fail("{}: wanted a byte piece like <0x0A>, got {}", place, json_quoted(piece.text));
}

std::string bytes_of_piece(const SentencePieceModel& model,
                           const SentencePieceModel::Piece& piece) {
  if (piece.type == PieceType::control || piece.type == PieceType::unknown) return {};
  if (!model.escape_spaces) return piece.text;
  std::string text;
  std::string_view rest = piece.text;
  while (!rest.empty()) {
    const bool space = rest.starts_with(kSpaceMark);
    text.push_back(space ? ' ' : rest[0]);
    rest.remove_prefix(space ? kSpaceMark.size() : 1);
  }
  return text;
}

// Whether a space can only begin a piece (or follow a space): then no piece crosses a cut there.
bool spaces_begin_pieces(const std::vector<std::string>& bytes) {
  for (const std::string& piece : bytes) {
    for (size_t i = 1; i < piece.size(); ++i) {
      if (piece[i] == ' ' && piece[i - 1] != ' ') return false;
    }
  }
  return true;
}

// The ids of words seen before. The library takes microseconds a word, most words are old ones.
using WordCache = std::unordered_map<std::string, std::vector<int32_t>>;

// A cache for each thread that encodes at the same time.
class WordCachePool {
 public:
  std::unique_ptr<WordCache> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<WordCache>();
    auto cache = std::move(free_.back());
    free_.pop_back();
    return cache;
  }
  void give_back(std::unique_ptr<WordCache> cache) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(cache));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> free_;
};

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string file, std::string place);

  std::vector<int32_t> encode(std::string_view text) const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(bytes_.size()); }
  std::optional<int32_t> bos() const override { return special(processor_.bos_id()); }
  std::optional<int32_t> eos() const override { return special(processor_.eos_id()); }
  std::optional<int32_t> token_id(std::string_view content) const override {
    const int id = processor_.PieceToId(content);  // of the unknown piece where there is none
    if (id < 0 || processor_.IdToPiece(id) != content) return std::nullopt;
    return id;
  }
  std::string name() const override { return name_; }
  bool exact() const override { return exact_; }
  std::string file_name() const override { return "tokenizer.model"; }
  const std::string& file_bytes() const override { return file_; }

 private:
  static std::optional<int32_t> special(int id) {
    return id < 0 ? std::nullopt : std::optional<int32_t>(id);
  }
  void load_pieces();
  void append_ids(std::string_view text, std::vector<int32_t>& ids) const;
  void append_words(std::string_view text, WordCache& cache, std::vector<int32_t>& ids) const;
  std::vector<int32_t> encode_exactly(std::string_view text) const;

  std::string file_;
  std::string place_;
  std::string name_;
  sentencepiece::SentencePieceProcessor processor_;
  std::array<int32_t, 256> byte_ids_;
  bool exact_ = false;
  bool can_cut_ = false;
  mutable WordCachePool caches_;
};

SentencePieceTokenizer::SentencePieceTokenizer(std::string file, std::string place)
    : file_(std::move(file)), place_(std::move(place)) {
  load_pieces();
  quiet_sentencepiece();
  try {
    const auto status = processor_.LoadFromSerializedProto(file_);
    if (!status.ok()) fail("{}: {}", place_, json_quoted(status.ToString()));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // its dictionary builder throws
    fail("{}: {}", place_, error.what());
  }
  if (processor_.GetPieceSize() != vocab_size()) {
    fail("{}: {} pieces, but the library reads {}", place_, vocab_size(),
         processor_.GetPieceSize());
  }
  std::vector<int32_t> ids;
  append_ids("a", ids);
  adds_leading_space_ = !ids.empty() && bytes_of(ids[0]).starts_with(' ');
  const bool has_bytes = std::find(byte_ids_.begin(), byte_ids_.end(), -1) == byte_ids_.end();
  exact_ = has_bytes && !adds_leading_space_ && decode(encode_exactly(kProbe)) == kProbe;
}

void SentencePieceTokenizer::load_pieces() {
  const SentencePieceModel model = parse_sentencepiece_model(file_, place_);
  name_ = model.kind == SentencePieceKind::bpe ? "sentencepiece (bpe)" : "sentencepiece (unigram)";
  byte_ids_.fill(-1);
  for (const auto& piece : model.pieces) {
    if (piece.type == PieceType::byte) {
      const int32_t byte = byte_value(piece, place_);
      byte_ids_[static_cast<size_t>(byte)] = vocab_size();
      bytes_.emplace_back(1, static_cast<char>(byte));
    } else {
      bytes_.push_back(bytes_of_piece(model, piece));
    }
  }
  can_cut_ = spaces_begin_pieces(bytes_);
}

void SentencePieceTokenizer::append_ids(std::string_view text, std::vector<int32_t>& ids) const {
  std::vector<int> found;
  const auto status = processor_.Encode(text, &found);
  if (!status.ok()) fail("{}: cannot encode: {}", place_, status.ToString());
  for (const int id : found) {
    if (id < 0 || id >= vocab_size()) fail("{}: the library gave id {}", place_, id);
    ids.push_back(id);
  }
}

// Cuts before each space that follows something else, where no merge can cross.
void SentencePieceTokenizer::append_words(std::string_view text, WordCache& cache,
                                          std::vector<int32_t>& ids) const {
  if (!can_cut_) return append_ids(text, ids);
  while (!text.empty()) {
    size_t end = 1;
    while (end < text.size() && (text[end] != ' ' || text[end - 1] == ' ')) ++end;
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    if (word.size() > kMaxCachedWord) {
      append_ids(word, ids);
      continue;
    }
    const auto [entry, is_new] = cache.try_emplace(std::string(word));
    if (is_new) append_ids(word, entry->second);
    ids.insert(ids.end(), entry->second.begin(), entry->second.end());
    if (cache.size() > kMaxCachedWords) cache.clear();
  }
}

// Bytes that are no UTF-8, and the character that the library takes for a space, go around the
// library as byte pieces.
std::vector<int32_t> SentencePieceTokenizer::encode_exactly(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 8);
  auto cache = caches_.take();
  size_t run = 0;  // start of the text not yet encoded
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text.substr(at));
    const bool plain =
        step.kind == Utf8Step::character && text.substr(at, step.bytes) != kSpaceMark;
    if (!plain) {
      append_words(text.substr(run, at - run), *cache, ids);
      for (size_t i = 0; i < step.bytes; ++i) {
        ids.push_back(byte_ids_[static_cast<uint8_t>(text[at + i])]);
      }
      run = at + step.bytes;
    }
    at += step.bytes;
  }
  append_words(text.substr(run), *cache, ids);
  caches_.give_back(std::move(cache));
  return ids;
}

std::vector<int32_t> SentencePieceTokenizer::encode(std::string_view text) const {
  if (exact_) return encode_exactly(text);
  std::vector<int32_t> ids;
  append_ids(text, ids);
  return ids;
}

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string bytes, std::string place) {
  return std::make_unique<SentencePieceTokenizer>(std::move(bytes), std::move(place));
}

}  // namespace zaya
