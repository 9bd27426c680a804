#pragma once
// The "pre_tokenizer" of tokenizer.json: steps that cut a text into pieces, over whose ends no
// token reaches.

#include <functional>
#include <string>
#include <vector>

#include "core/json.h"
#include "data/hf_growth.h"

namespace zaya {

// A text and the pieces of it that become tokens, in order; what lies between them is dropped.
struct Pieces {
  struct Piece {
    size_t begin;
    size_t end;
    bool first;  // nothing of the whole text comes before it
  };
  std::string text;
  std::vector<Piece> pieces;

  std::string_view view(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

class HfPreTokenizer {
 public:
  HfPreTokenizer() = default;
  // `place` begins every error: "tokenizer.json: pre_tokenizer". Error for a type not known here.
  HfPreTokenizer(const Json& value, const std::string& place) { add(value, place); }

  // `first`: the text is the start of what is encoded.
  Pieces apply(std::string text, bool first) const;

 private:
  using Step = std::function<void(Pieces&)>;
  void add(const Json& value, const std::string& place);

  std::vector<Step> steps_;
  HfGrowth growth_;
};

}  // namespace zaya
