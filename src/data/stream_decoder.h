#pragma once
// Ids to text while they are generated. What comes out is always whole UTF-8 characters: a
// character spread over several tokens waits for its last byte, and bytes that are no UTF-8 come
// out as U+FFFD. All that comes out together is what decode() makes of the same ids.

#include <cstdint>
#include <memory>
#include <string>

#include "data/tokenizer.h"

namespace zaya {

class StreamDecoder {
 public:
  // The tokenizer must outlive the decoder. `continues` is false when the first id pushed is the
  // first of its text: a leading space that the tokenizer itself added is then left out.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool continues = true)
      : decoder_(tokenizer.decoder(continues)) {}

  // The text that became certain with this id; often empty.
  std::string push(int32_t id);
  // What was still waiting (half a character as U+FFFD). The decoder is then as new, in the middle
  // of a text.
  std::string finish();

 private:
  // Takes the whole characters out of what waits.
  std::string whole_characters();

  std::unique_ptr<IdDecoder> decoder_;
  std::string waiting_;
};

}  // namespace zaya
