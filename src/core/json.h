#pragma once
// JSON from outside: parsed strictly, and read through getters whose errors name the place, what
// was wanted and what came: "config.json: hidden_size: wanted a positive integer, got \"abc\"".

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace zaya {

using Json = nlohmann::json;

inline constexpr int kMaxJsonDepth = 64;

// Refuses, with an Error that begins with `place`: bad syntax, bad UTF-8, a name that comes twice
// in one object (nlohmann would keep the last one) and nesting deeper than kMaxJsonDepth.
Json parse_json(std::string_view text, std::string_view place);
// As parse_json; errors begin with the path.
Json parse_json_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{256} << 20);

// The text of a value. Bytes that are not UTF-8 become U+FFFD instead of an exception.
std::string json_text(const Json& value, int indent = -1);
// A string in quotes with control characters escaped, for messages about names out of files.
std::string json_quoted(std::string_view text);

// An object inside a parsed document. A view: the Json must outlive it. Members that are null count
// as absent. The `_or` getters return the fallback for an absent member; the others refuse it.
class JsonObject {
 public:
  static constexpr int64_t kMaxInteger = std::numeric_limits<int64_t>::max();

  // `place` is the file (or the part of it) that errors name first. Error unless it is an object.
  JsonObject(const Json& value, std::string place);

  bool has(std::string_view key) const { return find(key) != nullptr; }
  int64_t integer(std::string_view key, int64_t min = 0, int64_t max = kMaxInteger) const;
  int64_t integer_or(std::string_view key, int64_t fallback, int64_t min = 0,
                     int64_t max = kMaxInteger) const;
  // Any finite number.
  double number(std::string_view key) const;
  double number_or(std::string_view key, double fallback) const;
  bool boolean(std::string_view key) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  std::string string(std::string_view key) const;
  std::string string_or(std::string_view key, std::string_view fallback) const;
  JsonObject object(std::string_view key) const;
  const Json& array(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key, int64_t min = 0,
                                int64_t max = kMaxInteger) const;
  std::vector<std::string> strings(std::string_view key) const;

  // The member, or nullptr when it is absent or null.
  const Json* find(std::string_view key) const;
  const Json& value() const { return *value_; }
  const std::string& place() const { return place_; }
  // Throws "place: path.key: wanted WANTED, got VALUE".
  [[noreturn]] void fail_wanted(std::string_view key, std::string_view wanted) const;

 private:
  JsonObject(const Json& value, std::string place, std::string path);
  template <class Predicate>
  const Json& member(std::string_view key, std::string_view wanted, Predicate fits) const;
  std::string path_of(std::string_view key) const;

  const Json* value_;
  std::string place_;
  std::string path_;  // of this object inside the document: "a.b", empty for the document itself
};

}  // namespace zaya
