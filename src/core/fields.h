#pragma once
// Each option is said once. A config struct has one description,
//
//   template <class V>
//   void describe(V& v, CheckpointConfig& c) {
//     v.field("every", c.every, "steps from one checkpoint to the next", at_least(1));
//   }
//
// and visitors make of it the parser (core/toml.h), the printed table (core/toml.h), JSON
// (core/fields_json.h) and the documentation (core/fields_docs.h). A member's initialiser is its
// default; a field whose default does not pass its own check has to be given.
//
// A field is a bool, an integer, a double or float, a string, an enum, a struct with a description,
// a vector of any of these, or a map from names to numbers. An enum says the names of its values,
// numbered from 0, beside its definition:
//
//   constexpr auto enum_names(Precision) { return std::to_array<std::string_view>({"f32", "bf16"});
//   }

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace zaya {

// What values a field may take. For a string or a list of structs the value is its length; for a
// list of numbers it is each of them.
struct Check {
  std::string wanted;                 // completes "wanted ...": "at least 1"
  std::function<bool(double)> holds;  // empty: anything goes

  bool passes(double value) const { return !holds || holds(value); }
};

inline Check greater_than(double low) {
  return {fmt::format("more than {}", low), [low](double v) { return v > low; }};
}
inline Check at_least(double low) {
  return {fmt::format("at least {}", low), [low](double v) { return v >= low; }};
}
inline Check between(double low, double high) {
  return {fmt::format("between {} and {}", low, high),
          [low, high](double v) { return v >= low && v <= high; }};
}
// low <= value < high
inline Check in_half_open(double low, double high) {
  return {fmt::format("at least {} and less than {}", low, high),
          [low, high](double v) { return v >= low && v < high; }};
}
// A positive multiple.
inline Check multiple_of(int64_t unit) {
  return {fmt::format("a multiple of {}", unit),
          [unit](double v) { return v > 0 && std::fmod(v, static_cast<double>(unit)) == 0; }};
}
inline Check not_empty() {
  return {"something", [](double length) { return length > 0; }};
}

namespace fields {

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

using NumberMap = std::map<std::string, double>;

template <class T>
inline constexpr bool is_scalar =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string>;
template <class T>
inline constexpr bool is_struct = !is_scalar<T> && !is_vector<T> && !std::is_same_v<T, NumberMap>;

// The value a Check looks at.
template <class T>
double checked_value(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<double>(static_cast<int>(value));
  } else {
    return static_cast<double>(value.size());
  }
}

template <class T>
std::string_view enum_name(T value) {
  const auto names = enum_names(value);
  const auto i = static_cast<size_t>(value);
  return i < names.size() ? names[i] : std::string_view("?");
}

// The value of that name; none where there is no such name.
template <class T>
std::optional<T> enum_value(std::string_view name) {
  const auto names = enum_names(T{});
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<T>(i);
  return std::nullopt;
}

// "a, b or c"
template <class T>
std::string enum_choices() {
  const auto names = enum_names(T{});
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace fields
}  // namespace zaya
