#pragma once
// What a SentencePiece .model file says, read with every length and value checked before the
// SentencePiece library (which trusts its tables) sees the file.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zaya {

// Values and names as in sentencepiece_model.proto.
enum class PieceType {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};
enum class SentencePieceKind { unigram = 1, bpe = 2, word = 3, character = 4 };

// Stands for a space inside pieces: U+2581.
inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";

struct SentencePieceModel {
  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::normal;
  };
  std::vector<Piece> pieces;
  SentencePieceKind kind = SentencePieceKind::unigram;
  bool escape_spaces = true;
};

// Error "place: ..." for bytes that are no model, for a kind other than BPE and unigram, and for
// contents that the library would stumble over.
SentencePieceModel parse_sentencepiece_model(std::string_view bytes, std::string_view place);

// Error unless the blob is a normaliser table whose every reference stays inside it.
void check_normalizer_table(std::string_view blob, std::string_view place);

}  // namespace zaya
