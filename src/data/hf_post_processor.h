#pragma once
// The "post_processor" of tokenizer.json: the ids that go around a document's own.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace zaya {

class HfPostProcessor {
 public:
  HfPostProcessor() = default;
  // `place` begins every error; ids must be below `vocab_size`.
  HfPostProcessor(const Json& value, const std::string& place, int32_t vocab_size)
      : vocab_size_(vocab_size) {
    add(value, place);
  }

  const std::vector<int32_t>& before() const { return before_; }
  const std::vector<int32_t>& after() const { return after_; }

 private:
  void add(const Json& value, const std::string& place);
  void add_template(const JsonObject& object, const std::string& place);
  void add_bert(const JsonObject& object);
  void wrap(std::vector<int32_t> before, const std::vector<int32_t>& after);

  int32_t vocab_size_ = 0;
  std::vector<int32_t> before_;
  std::vector<int32_t> after_;
};

}  // namespace zaya
