#pragma once
// A "pattern" of tokenizer.json: {"String": "..."} or {"Regex": "..."}.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"
#include "data/hf_regex.h"

namespace zaya {

class HfPattern {
 public:
  // The member "pattern" of an object whose errors begin with `place`.
  static HfPattern of(const JsonObject& object, const std::string& place);
  explicit HfPattern(std::string text) : text_(std::move(text)) {}
  explicit HfPattern(Regex regex) : regex_(std::move(regex)) {}

  void each_match(std::string_view text, const std::function<void(size_t, size_t)>& found) const;
  // At most so many bytes become of each byte in replaced().
  double growth(std::string_view content) const;
  std::string replaced(std::string_view text, std::string_view content) const;
  // The string to look for; empty for a regular expression.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::optional<Regex> regex_;
};

}  // namespace zaya
