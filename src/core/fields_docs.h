#pragma once
// The visitor that writes the documentation of a struct with a description (core/fields.h): one
// Markdown table for the struct and one for each struct inside it.

#include <string>
#include <utility>

#include "core/toml.h"

namespace zaya {

class DocsWriter {
 public:
  explicit DocsWriter(std::string path = "") : path_(std::move(path)) {}

  template <class T>
  void field(const char* key, T& value, const char* help, const Check& check = {}) {
    if constexpr (fields::is_struct<T>) {
      section(key, "[{}]", help, value);
    } else if constexpr (fields::is_vector<T>) {
      using Element = typename T::value_type;
      if constexpr (fields::is_struct<Element>) {
        Element element{};
        section(key, "[[{}]]", help, element);
      } else {
        row(key, fmt::format("list of {}s", type_of<Element>()), TomlPrinter::text(value), help,
            check);
      }
    } else {
      const bool required =
          !check.passes(fields::checked_value(value)) && !std::is_same_v<T, fields::NumberMap>;
      row(key, type_of<T>(), required ? "" : TomlPrinter::text(value), help, check);
    }
  }

  std::string finish() const {
    const std::string head = "| key | type | default | wanted | meaning |\n|---|---|---|---|---|\n";
    return (rows_.empty() ? "" : head + rows_) + sections_;
  }

 private:
  template <class T>
  static std::string type_of() {
    if constexpr (std::is_same_v<T, bool>) return "boolean";
    if constexpr (std::is_integral_v<T>) return "integer";
    if constexpr (std::is_floating_point_v<T>) return "number";
    if constexpr (std::is_enum_v<T>) return fields::enum_choices<T>();
    if constexpr (std::is_same_v<T, fields::NumberMap>) return "table of numbers";
    return "string";
  }

  void row(const char* key, const std::string& type, const std::string& value, const char* help,
           const Check& check) {
    rows_ += fmt::format("| `{}` | {} | {} | {} | {} |\n", key, type,
                         value.empty() ? "must be given" : fmt::format("`{}`", value), check.wanted,
                         help);
  }

  template <class T>
  void section(const char* key, const char* header, const char* help, T& value) {
    const std::string path = path_.empty() ? std::string(key) : path_ + "." + key;
    DocsWriter inner(path);
    describe(inner, value);
    sections_ += fmt::format("\n## `{}`\n\n{}.\n\n{}", fmt::format(fmt::runtime(header), path),
                             help, inner.finish());
  }

  std::string path_;
  std::string rows_;
  std::string sections_;
};

template <class T>
std::string to_docs() {
  T value{};
  DocsWriter writer;
  describe(writer, value);
  return writer.finish();
}

}  // namespace zaya
