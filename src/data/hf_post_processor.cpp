#include "data/hf_post_processor.h"

#include <utility>

#include "core/error.h"

namespace zaya {

void HfPostProcessor::add(const Json& value, const std::string& place) {
  if (value.is_null()) return;
  const JsonObject object(value, place);
  const std::string type = object.string("type");
  if (type == "Sequence") {
    size_t i = 0;
    for (const Json& part : object.array("processors"))
      add(part, fmt::format("{}.processors[{}]", place, i++));
  } else if (type == "TemplateProcessing") {
    add_template(object, place);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    add_bert(object);
  } else if (type != "ByteLevel") {  // which only changes offsets
    object.fail_wanted(
        "type", "Sequence, TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel");
  }
}

void HfPostProcessor::wrap(std::vector<int32_t> before, const std::vector<int32_t>& after) {
  before.insert(before.end(), before_.begin(), before_.end());
  before_ = std::move(before);
  after_.insert(after_.end(), after.begin(), after.end());
}

void HfPostProcessor::add_template(const JsonObject& object, const std::string& place) {
  std::vector<int32_t> before, after;
  bool seen = false;
  size_t i = 0;
  for (const Json& value : object.array("single")) {
    const JsonObject part(value, fmt::format("{}.single[{}]", place, i++));
    if (part.has("Sequence")) {
      if (std::exchange(seen, true) || part.object("Sequence").string("id") != "A")
        part.fail_wanted("Sequence", "the text A, once");
      continue;
    }
    const std::string name = part.object("SpecialToken").string("id");
    const JsonObject token = object.object("special_tokens").object(name);
    for (const int64_t id : token.integers("ids", 0, vocab_size_ - 1))
      (seen ? after : before).push_back(static_cast<int32_t>(id));
  }
  if (!seen) object.fail_wanted("single", "a template with the text A in it");
  wrap(std::move(before), after);
}

void HfPostProcessor::add_bert(const JsonObject& object) {
  const auto id_of = [&](const char* key) {
    const Json& pair = object.array(key);
    const bool fits = pair.size() == 2 && pair[1].is_number_integer() &&
                      pair[1].get<int64_t>() >= 0 && pair[1].get<int64_t>() < vocab_size_;
    if (!fits) object.fail_wanted(key, fmt::format("a token and its id below {}", vocab_size_));
    return pair[1].get<int32_t>();
  };
  wrap({id_of("cls")}, {id_of("sep")});
}

}  // namespace zaya
