#include "data/sentencepiece_model.h"

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/json.h"
#include "data/proto_reader.h"
#include "data/utf8.h"

namespace zaya {

namespace {

constexpr size_t kMaxPieces = size_t{1} << 22;

SentencePieceModel::Piece parse_piece(std::string_view bytes, std::string_view place) {
  SentencePieceModel::Piece piece;
  ProtoReader reader(bytes, place);
  while (reader.next()) {
    if (reader.field() == 1) piece.text = reader.bytes();
    if (reader.field() == 2) piece.score = reader.real();
    if (reader.field() == 3) {
      const uint64_t type = reader.number();
      if (type < 1 || type > 6) fail("{}: wanted a piece type of 1 to 6, got {}", place, type);
      piece.type = static_cast<PieceType>(type);
    }
  }
  if (piece.text.empty()) fail("{}: an empty piece", place);
  // The library's dictionaries end their keys with a zero byte.
  if (!is_utf8(piece.text) || piece.text.find('\0') != std::string::npos) {
    fail("{}: wanted a piece in UTF-8 without zero bytes, got {}", place, json_quoted(piece.text));
  }
  if (!std::isfinite(piece.score)) fail("{}: wanted a finite score, got {}", place, piece.score);
  return piece;
}

void parse_trainer(std::string_view bytes, std::string_view place, SentencePieceModel& model) {
  ProtoReader reader(bytes, place);
  while (reader.next()) {
    if (reader.field() != 3) continue;
    const uint64_t kind = reader.number();
    if (kind != 1 && kind != 2) {
      fail("{}: wanted model type 1 (unigram) or 2 (BPE), got {}", place, kind);
    }
    model.kind = static_cast<SentencePieceKind>(kind);
  }
}

void parse_normalizer(std::string_view bytes, std::string_view place, SentencePieceModel& model) {
  ProtoReader reader(bytes, place);
  while (reader.next()) {
    if (reader.field() == 2 && !reader.bytes().empty()) {
      check_normalizer_table(reader.bytes(), place);
    }
    if (reader.field() == 5) model.escape_spaces = reader.number() != 0;
  }
}

uint32_t load_u32(const char* data) {
  uint32_t value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

}  // namespace

SentencePieceModel parse_sentencepiece_model(std::string_view bytes, std::string_view place) {
  SentencePieceModel model;
  size_t unknown = 0;
  const std::string trainer = fmt::format("{}: trainer_spec", place);
  const std::string normalizer = fmt::format("{}: normalizer_spec", place);
  ProtoReader reader(bytes, place);
  while (reader.next()) {
    if (reader.field() == 1) {
      if (model.pieces.size() == kMaxPieces) fail("{}: more than {} pieces", place, kMaxPieces);
      const std::string where = fmt::format("{}: piece {}", place, model.pieces.size());
      model.pieces.push_back(parse_piece(reader.bytes(), where));
      unknown += model.pieces.back().type == PieceType::unknown;
    }
    if (reader.field() == 2) parse_trainer(reader.bytes(), trainer, model);
    if (reader.field() == 3 || reader.field() == 5) {  // 5 is the denormaliser
      parse_normalizer(reader.bytes(), normalizer, model);
    }
  }
  if (model.pieces.empty()) fail("{}: wanted a SentencePiece model, got one without pieces", place);
  if (unknown != 1) fail("{}: wanted one piece of type unknown, got {}", place, unknown);
  return model;
}

// The blob is [bytes of the trie, u32][trie, u32 units of a double array][zero-ended strings].
// Unit layout (Darts-clone): leaf flag in bit 31 with the value below it; otherwise the label in
// the low byte, "has a leaf" in bit 8 and the offset of the children above.
void check_normalizer_table(std::string_view blob, std::string_view place) {
  if (blob.size() < 4) fail("{}: a normaliser table of {} bytes", place, blob.size());
  const uint64_t trie_bytes = load_u32(blob.data());
  if (trie_bytes < 1024 || trie_bytes % 1024 != 0 || trie_bytes >= blob.size() - 4) {
    fail("{}: a normaliser table of {} bytes with a trie of {}", place, blob.size(), trie_bytes);
  }
  const std::string_view strings = blob.substr(4 + trie_bytes);
  if (strings.back() != '\0') fail("{}: the normaliser's last string does not end", place);
  const uint64_t units = trie_bytes / 4;
  for (uint64_t i = 0; i < units; ++i) {
    const uint32_t unit = load_u32(blob.data() + 4 + 4 * i);
    if (unit >> 31 != 0) {
      if ((unit & 0x7fffffffu) >= strings.size()) {
        fail("{}: normaliser unit {} refers to string {} of {}", place, i, unit & 0x7fffffffu,
             strings.size());
      }
      continue;
    }
    // Children lie at (i ^ offset) ^ label: inside, because units come in whole blocks of 256.
    const uint64_t offset = static_cast<uint64_t>(unit >> 10) << ((unit & (1u << 9)) >> 6);
    if ((i ^ offset) >= units) {
      fail("{}: normaliser unit {} refers to unit {} of {}", place, i, i ^ offset, units);
    }
    // The leaf of a node is read as a value without a look at its flag.
    const uint32_t leaf = load_u32(blob.data() + 4 + 4 * (i ^ offset));
    if ((unit >> 8 & 1) != 0 && (leaf & 0x7fffffffu) >= strings.size()) {
      fail("{}: normaliser unit {} has a leaf that refers outside the strings", place, i);
    }
  }
}

}  // namespace zaya
