#pragma once
// The "normalizer" of tokenizer.json: steps that rewrite a text before it is cut.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "data/hf_growth.h"

namespace zaya {

class HfNormalizer {
 public:
  HfNormalizer() = default;
  // `place` begins every error: "tokenizer.json: normalizer". Error for a type not known here.
  HfNormalizer(const Json& value, const std::string& place) { add(value, place); }

  bool empty() const { return steps_.empty(); }
  std::string apply(std::string_view text) const;

 private:
  using Step = std::function<std::string(std::string_view)>;
  void add(const Json& value, const std::string& place);

  std::vector<Step> steps_;
  HfGrowth growth_;
};

}  // namespace zaya
