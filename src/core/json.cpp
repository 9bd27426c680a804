#include "core/json.h"

#include <cmath>
#include <set>

#include "core/error.h"
#include "core/file.h"

namespace zaya {
namespace {

// For messages, which a terminal may show: JSON's escapes cover all control characters but DEL.
std::string message_text(const Json& value) {
  std::string text;
  for (const char c : json_text(value)) {
    if (c == '\x7f') {
      text += "\\u007f";
    } else {
      text += c;
    }
  }
  return text;
}

// A string escaped as inside quotes.
std::string escaped(std::string_view text) {
  const std::string quoted = json_quoted(text);
  return quoted.substr(1, quoted.size() - 2);
}

// Watches a parse go by: nesting, and the names of each open object.
class ParseGuard {
 public:
  explicit ParseGuard(std::string_view place) : place_(place) {}

  bool operator()(int, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        if (names_.size() >= kMaxJsonDepth)
          fail("{}: wanted at most {} nested levels, got more", place_, kMaxJsonDepth);
        names_.emplace_back();
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        names_.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!names_.back().insert(parsed.get<std::string>()).second)
          fail("{}: the name {} comes twice in one object", place_, message_text(parsed));
        break;
      case Json::parse_event_t::value:
        break;
    }
    return true;
  }

 private:
  std::string_view place_;
  std::vector<std::set<std::string>> names_;
};

// "[json.exception.parse_error.101] parse error at line 1 ...": the part after the bracket.
std::string reason_of(const Json::exception& error) {
  const std::string_view what = error.what();
  const size_t bracket = what.find("] ");
  // The message repeats what it read, which may be anything: escape it.
  return escaped(bracket == what.npos ? what : what.substr(bracket + 2));
}

std::string shortened(const Json* value) {
  if (!value || value->is_null()) return "nothing";
  if (value->is_structured() && value->size() > 8)
    return fmt::format("{} of {} elements", value->type_name(), value->size());
  const std::string text = message_text(*value);
  if (text.size() <= 80) return text;
  size_t end = 77;
  while ((text[end] & 0xc0) == 0x80) --end;  // not inside a UTF-8 character
  return text.substr(0, end) + "...";
}

std::string integer_wanted(int64_t min, int64_t max) {
  if (max == JsonObject::kMaxInteger && min == 0) return "a non-negative integer";
  if (max == JsonObject::kMaxInteger && min == 1) return "a positive integer";
  if (max == JsonObject::kMaxInteger) return fmt::format("an integer of at least {}", min);
  return fmt::format("an integer from {} to {}", min, max);
}

bool is_integer_in(const Json& value, int64_t min, int64_t max) {
  if (!value.is_number_integer()) return false;
  // Above the largest int64 nlohmann holds an unsigned number, which would wrap.
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) return false;
  const int64_t number = value.get<int64_t>();
  return min <= number && number <= max;
}

}  // namespace

Json parse_json(std::string_view text, std::string_view place) {
  // nlohmann takes the callback by copy, so the guard is passed by reference.
  ParseGuard guard(place);
  try {
    return Json::parse(text.begin(), text.end(), std::ref(guard));
  } catch (const Json::exception& error) {
    fail("{}: {}", place, reason_of(error));
  }
}

Json parse_json_file(const std::filesystem::path& path, uint64_t max_bytes) {
  return parse_json(read_file(path, max_bytes), path.string());
}

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string json_quoted(std::string_view text) { return message_text(Json(std::string(text))); }

JsonObject::JsonObject(const Json& value, std::string place)
    : JsonObject(value, std::move(place), std::string()) {}

JsonObject::JsonObject(const Json& value, std::string place, std::string path)
    : value_(&value), place_(std::move(place)), path_(std::move(path)) {
  if (!value.is_object())
    fail("{}: {}wanted an object, got {}", place_, path_.empty() ? "" : path_ + ": ",
         shortened(&value));
}

const Json* JsonObject::find(std::string_view key) const {
  const auto found = value_->find(key);
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

std::string JsonObject::path_of(std::string_view key) const {
  // Some keys come out of the file: tensor names, tokens.
  return path_.empty() ? escaped(key) : fmt::format("{}.{}", path_, escaped(key));
}

void JsonObject::fail_wanted(std::string_view key, std::string_view wanted) const {
  fail("{}: {}: wanted {}, got {}", place_, path_of(key), wanted, shortened(find(key)));
}

template <class Predicate>
const Json& JsonObject::member(std::string_view key, std::string_view wanted,
                               Predicate fits) const {
  const Json* value = find(key);
  if (!value || !fits(*value)) fail_wanted(key, wanted);
  return *value;
}

int64_t JsonObject::integer(std::string_view key, int64_t min, int64_t max) const {
  const auto fits = [&](const Json& value) { return is_integer_in(value, min, max); };
  return member(key, integer_wanted(min, max), fits).template get<int64_t>();
}

int64_t JsonObject::integer_or(std::string_view key, int64_t fallback, int64_t min,
                               int64_t max) const {
  return has(key) ? integer(key, min, max) : fallback;
}

double JsonObject::number(std::string_view key) const {
  const auto fits = [](const Json& value) {
    return value.is_number() && std::isfinite(value.get<double>());
  };
  return member(key, "a number", fits).template get<double>();
}

double JsonObject::number_or(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

bool JsonObject::boolean(std::string_view key) const {
  return member(key, "true or false", [](const Json& value) { return value.is_boolean(); })
      .template get<bool>();
}

bool JsonObject::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

std::string JsonObject::string(std::string_view key) const {
  return member(key, "a string", [](const Json& value) { return value.is_string(); })
      .template get<std::string>();
}

std::string JsonObject::string_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? string(key) : std::string(fallback);
}

JsonObject JsonObject::object(std::string_view key) const {
  const Json& value = member(key, "an object", [](const Json& v) { return v.is_object(); });
  return JsonObject(value, place_, path_of(key));
}

const Json& JsonObject::array(std::string_view key) const {
  return member(key, "an array", [](const Json& value) { return value.is_array(); });
}

std::vector<int64_t> JsonObject::integers(std::string_view key, int64_t min, int64_t max) const {
  std::vector<int64_t> numbers;
  for (const Json& value : array(key)) {
    if (!is_integer_in(value, min, max))
      fail("{}: {}[{}]: wanted {}, got {}", place_, path_of(key), numbers.size(),
           integer_wanted(min, max), shortened(&value));
    numbers.push_back(value.get<int64_t>());
  }
  return numbers;
}

std::vector<std::string> JsonObject::strings(std::string_view key) const {
  std::vector<std::string> texts;
  for (const Json& value : array(key)) {
    if (!value.is_string())
      fail("{}: {}[{}]: wanted a string, got {}", place_, path_of(key), texts.size(),
           shortened(&value));
    texts.push_back(value.get<std::string>());
  }
  return texts;
}

}  // namespace zaya
