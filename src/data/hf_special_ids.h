#pragma once
// Which tokens begin and end a document: tokenizer.json itself does not say.

#include <functional>
#include <optional>
#include <string_view>

#include "data/hf_added_tokens.h"
#include "data/hf_post_processor.h"
#include "data/hf_tokenizer.h"

namespace zaya {

struct HfSpecialIds {
  std::optional<int32_t> bos;
  std::optional<int32_t> eos;
};

// From the first of: tokenizer_config.json, which may also say that there is none; what the
// post-processor puts at the ends; the special tokens with the usual names. `id_of` looks up
// contents. Error for a name in tokenizer_config.json that is no token.
HfSpecialIds find_special_ids(const HfConfigFile& config, const HfPostProcessor& post_processor,
                              const HfAddedTokens& added,
                              const std::function<std::optional<int32_t>(std::string_view)>& id_of);

}  // namespace zaya
