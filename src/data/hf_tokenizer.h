#pragma once
// Tokenizers from HF's tokenizer.json. docs/formats.md says which parts of it are honoured; a file
// that needs another part is refused.
//
// Ids are those of HF's own library. Text that is no UTF-8 is encoded as if U+FFFD stood in place
// of each ill-formed part, as the library cannot be given such text at all.

#include <memory>
#include <string>

#include "data/tokenizer.h"

namespace zaya {

// The tokenizer_config.json that lies beside a tokenizer.json: it names bos and eos. `bytes` is
// empty where there is none.
struct HfConfigFile {
  std::string bytes;
  std::string place;
};

std::unique_ptr<Tokenizer> make_hf_tokenizer(std::string bytes, std::string place,
                                             HfConfigFile config);

}  // namespace zaya
