#include "data/hf_file.h"

#include <simdjson.h>

#include <utility>

#include "core/error.h"

namespace zaya {
namespace {

namespace dom = simdjson::dom;

[[noreturn]] void refuse(const std::string& place, std::string_view wanted, dom::element got) {
  if (got.is_object()) fail("{}: wanted {}, got an object", place, wanted);
  if (got.is_array())
    fail("{}: wanted {}, got an array of {} elements", place, wanted, dom::array(got).size());
  std::string_view text;
  if (got.get(text) == simdjson::SUCCESS)
    fail("{}: wanted {}, got {}", place, wanted, json_quoted(text.substr(0, 80)));
  fail("{}: wanted {}, got {}", place, wanted, std::string(simdjson::minify(got)));
}

class Reader {
 public:
  explicit Reader(HfFile& file) : file_(file) {}

  Json document(dom::element root) {
    if (!root.is_object()) refuse(file_.place, "an object", root);
    Json members = Json::object();
    for (const auto [key, value] : dom::object(root))
      add(members, key, key == "model" && value.is_object() ? model(value) : convert(value));
    return members;
  }

 private:
  void add(Json& object, std::string_view key, Json value) {
    if (!object.emplace(std::string(key), std::move(value)).second)
      fail("{}: the name {} comes twice in one object", file_.place, json_quoted(key));
  }

  // Recursion as deep as the parser let the document nest.
  Json convert(dom::element value) {
    switch (value.type()) {
      case dom::element_type::OBJECT: {
        Json object = Json::object();
        for (const auto [key, member] : dom::object(value)) add(object, key, convert(member));
        return object;
      }
      case dom::element_type::ARRAY: {
        Json array = Json::array();
        for (const dom::element item : dom::array(value)) array.push_back(convert(item));
        return array;
      }
      case dom::element_type::STRING:
        return std::string(std::string_view(value));
      case dom::element_type::INT64:
        return int64_t(value);
      case dom::element_type::UINT64:
        return uint64_t(value);
      case dom::element_type::DOUBLE:
        return double(value);
      case dom::element_type::BOOL:
        return bool(value);
      default:
        return nullptr;
    }
  }

  Json model(dom::element model) {
    Json rest = Json::object();
    bool has_vocab = false, has_merges = false;
    std::string_view type = "BPE";  // old files do not say
    if (model["type"].get(type) == simdjson::INCORRECT_TYPE || type != "BPE")
      refuse(file_.place + ": model.type", "\"BPE\"", model["type"].value());
    for (const auto [key, value] : dom::object(model)) {
      if (key == "vocab" && !std::exchange(has_vocab, true)) {
        vocab(value);
      } else if (key == "merges" && !std::exchange(has_merges, true)) {
        merges(value);
      } else if (key == "vocab" || key == "merges") {
        fail("{}: the name \"{}\" comes twice in one object", file_.place, key);
      } else {
        add(rest, key, convert(value));
      }
    }
    if (!has_vocab) fail("{}: model.vocab: wanted an object, got nothing", file_.place);
    if (!has_merges) fail("{}: model.merges: wanted an array, got nothing", file_.place);
    return rest;
  }

  void vocab(dom::element value) {
    const std::string place = file_.place + ": model.vocab";
    dom::object tokens;
    if (value.get(tokens) != simdjson::SUCCESS) refuse(place, "an object", value);
    file_.vocab.reserve(tokens.size());
    for (const auto [content, number] : tokens) {
      int64_t id = 0;
      if (number.get(id) != simdjson::SUCCESS || id < 0 || id > kMaxTokenId)
        refuse(fmt::format("{}[{}]", place, json_quoted(content)),
               fmt::format("an integer from 0 to {}", kMaxTokenId), number);
      file_.vocab.push_back({content, static_cast<int32_t>(id)});
    }
  }

  void merges(dom::element value) {
    dom::array list;
    if (value.get(list) != simdjson::SUCCESS)
      refuse(file_.place + ": model.merges", "an array", value);
    file_.merges.reserve(list.size());
    size_t i = 0;
    for (const dom::element merge : list) add_merge(merge, i++);
  }

  // "left right" or ["left", "right"].
  void add_merge(dom::element value, size_t index) {
    std::string_view text;
    dom::array pair;
    HfFile::Merge merge;
    bool fits = false;
    if (value.get(text) == simdjson::SUCCESS) {
      if (text.starts_with("#version")) return;
      const size_t space = text.find(' ');
      fits = space != text.npos && text.find(' ', space + 1) == text.npos;
      if (fits) merge = {text.substr(0, space), text.substr(space + 1)};
    } else if (value.get(pair) == simdjson::SUCCESS) {
      fits = pair.size() == 2 && pair.at(0).get(merge.left) == simdjson::SUCCESS &&
             pair.at(1).get(merge.right) == simdjson::SUCCESS;
    }
    if (!fits) refuse(fmt::format("{}: model.merges[{}]", file_.place, index), "two pieces", value);
    file_.merges.push_back(merge);
  }

  HfFile& file_;
};

}  // namespace

HfFile parse_hf_file(const std::string& bytes, std::string place) {
  HfFile file;
  file.place = std::move(place);
  auto parser = std::make_shared<dom::parser>();
  file.strings = parser;
  simdjson::error_code error = parser->allocate(bytes.size(), kMaxJsonDepth);
  dom::element root;
  if (!error) error = parser->parse(bytes).get(root);
  if (error == simdjson::DEPTH_ERROR)
    fail("{}: wanted at most {} nested levels, got more", file.place, kMaxJsonDepth);
  if (error) fail("{}: wanted JSON, got {}", file.place, simdjson::error_message(error));
  file.document = Reader(file).document(root);
  return file;
}

}  // namespace zaya
