#pragma once
// TOML in and out of structs with a description (core/fields.h). toml++ stays behind toml.cpp.
//
// A mistake in the file is an Error that names file, path, what was wanted and what came, and the
// line where there is one:
//   recipe.toml: phases[1].seq_len: wanted a multiple of 64, got 100 (line 31)

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/fields.h"

namespace zaya {

class TomlReader;

class TomlDocument {
 public:
  static TomlDocument read_file(const std::string& path);
  // `name` stands for the file in messages.
  static TomlDocument parse(std::string_view text, std::string name);
  ~TomlDocument();
  TomlDocument(TomlDocument&&) noexcept;

  // Overrides one value: "phases[0].seq_len=256". The right side is a TOML value, or else taken as
  // a string as it stands. Tables on the way are made; array elements must be there.
  void set(std::string_view assignment);

  // Fills `out`, leaving what the file does not mention. Refuses unknown keys, wrong types and
  // values out of range, and fields that have no usable default and are not given.
  template <class T>
  void read(T& out) const;

  // For contradictions between fields, which only the struct's owner can see.
  [[noreturn]] void fail_at(std::string_view path, std::string_view wanted,
                            std::string_view got) const;
  const std::string& name() const;

 private:
  friend class TomlReader;
  struct Impl;
  explicit TomlDocument(std::unique_ptr<Impl> impl);
  const void* root() const;
  std::unique_ptr<Impl> impl_;
};

// The visitor that reads one table; a null table stands for one that is not in the file.
class TomlReader {
 public:
  TomlReader(const TomlDocument& document, const void* table, std::string path)
      : document_(document), table_(table), path_(std::move(path)) {}

  template <class T>
  void field(const char* key, T& value, const char* /*help*/, const Check& check = {}) {
    known_.emplace_back(key);
    read(find(key), child(key), value, check);
  }
  // Refuses keys that no field asked for.
  void finish() const;

 private:
  template <class T>
  void read(const void* node, const std::string& path, T& value, const Check& check);
  template <class T>
  void read_list(const void* node, const std::string& path, std::vector<T>& list,
                 const Check& check);
  template <class T>
  void read_scalar(const void* node, const std::string& path, T& value) const;
  template <class T>
  void require(const std::string& path, const T& value, const Check& check, bool given) const;

  const void* find(const char* key) const;
  std::string child(std::string_view key) const;
  [[noreturn]] void wrong(const std::string& path, std::string_view wanted,
                          std::string_view got) const;
  const void* as_table(const void* node, const std::string& path) const;
  std::vector<const void*> elements(const void* node, const std::string& path) const;
  bool as_bool(const void* node, const std::string& path) const;
  // An integer, or a float with an integer's value ("8e12"), within [low, high].
  int64_t as_integer(const void* node, const std::string& path, int64_t low, int64_t high) const;
  double as_number(const void* node, const std::string& path) const;
  std::string as_string(const void* node, const std::string& path) const;
  fields::NumberMap as_number_map(const void* node, const std::string& path) const;

  const TomlDocument& document_;
  const void* table_;
  std::string path_;
  std::vector<std::string> known_;
};

// The visitor that writes a struct as TOML: scalars first, then tables, then arrays of tables.
class TomlPrinter {
 public:
  TomlPrinter(std::string table, bool comments) : table_(std::move(table)), comments_(comments) {}

  template <class T>
  void field(const char* key, T& value, const char* help, const Check& = {}) {
    if constexpr (fields::is_struct<T>) {
      append_table(key, value, "[{}]");
    } else if constexpr (fields::is_vector<T>) {
      if constexpr (fields::is_struct<typename T::value_type>) {
        for (auto& element : value) append_table(key, element, "[[{}]]");
      } else {
        line(key, text(value), help);
      }
    } else {
      line(key, text(value), help);
    }
  }
  std::string finish() const { return scalars_ + tables_; }

  // One value as TOML: 4096, 0.5, "bf16", [1, 2], { web = 0.5 }.
  template <class T>
  static std::string text(const T& value);

 private:
  template <class T>
  void append_table(const char* key, T& value, const char* header);
  void line(const char* key, const std::string& value, const char* help);
  static std::string number(double value);
  static std::string quoted(std::string_view value);
  static std::string key_text(std::string_view key);

  std::string table_;
  bool comments_;
  std::string scalars_;
  std::string tables_;
};

// A whole struct as TOML text that TomlDocument reads back to an equal struct. With comments, each
// line carries its help.
template <class T>
std::string to_toml(T value, bool comments = false) {
  TomlPrinter printer("", comments);
  describe(printer, value);
  return printer.finish();
}

// ---- templates ----

template <class T>
void TomlReader::require(const std::string& path, const T& value, const Check& check,
                         bool given) const {
  if (check.passes(fields::checked_value(value))) return;
  if (!given) wrong(path, check.wanted, "nothing");
  wrong(path, check.wanted, TomlPrinter::text(value));
}

template <class T>
void TomlReader::read_scalar(const void* node, const std::string& path, T& value) const {
  if constexpr (std::is_same_v<T, bool>) {
    value = as_bool(node, path);
  } else if constexpr (std::is_integral_v<T>) {
    // TOML's integers are 64-bit signed.
    constexpr int64_t high =
        sizeof(T) == 8 ? INT64_MAX : static_cast<int64_t>(std::numeric_limits<T>::max());
    constexpr int64_t low = static_cast<int64_t>(std::numeric_limits<T>::min());
    value = static_cast<T>(as_integer(node, path, low, high));
  } else if constexpr (std::is_floating_point_v<T>) {
    value = static_cast<T>(as_number(node, path));
  } else if constexpr (std::is_enum_v<T>) {
    const std::string name = as_string(node, path);
    const std::optional<T> named = fields::enum_value<T>(name);
    if (!named) wrong(path, fields::enum_choices<T>(), TomlPrinter::text(name));
    value = *named;
  } else {
    value = as_string(node, path);
  }
}

template <class T>
void TomlReader::read_list(const void* node, const std::string& path, std::vector<T>& list,
                           const Check& check) {
  if (node != nullptr) {
    list.clear();
    for (const void* element : elements(node, path)) {
      const std::string at = fmt::format("{}[{}]", path, list.size());
      T item{};
      read(element, at, item, fields::is_scalar<T> ? check : Check{});
      list.push_back(std::move(item));
    }
  }
  if constexpr (fields::is_struct<T>) require(path, list, check, node != nullptr);
}

template <class T>
void TomlReader::read(const void* node, const std::string& path, T& value, const Check& check) {
  if constexpr (fields::is_struct<T>) {
    TomlReader reader(document_, as_table(node, path), path);
    describe(reader, value);
    reader.finish();
  } else if constexpr (fields::is_vector<T>) {
    read_list(node, path, value, check);
  } else if constexpr (std::is_same_v<T, fields::NumberMap>) {
    if (node != nullptr) value = as_number_map(node, path);
    for (const auto& [name, number] : value) {
      require(path + "." + name, number, check, node != nullptr);
    }
  } else {
    if (node != nullptr) read_scalar(node, path, value);
    require(path, value, check, node != nullptr);
  }
}

template <class T>
void TomlDocument::read(T& out) const {
  TomlReader reader(*this, root(), "");
  describe(reader, out);
  reader.finish();
}

template <class T>
std::string TomlPrinter::text(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return fmt::format("{}", value);
  } else if constexpr (std::is_same_v<T, float>) {
    // By its own shortest digits, not those of the double it widens to.
    return number(std::stod(fmt::format("{}", value)));
  } else if constexpr (std::is_floating_point_v<T>) {
    return number(value);
  } else if constexpr (std::is_enum_v<T>) {
    return quoted(fields::enum_name(value));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return quoted(value);
  } else if constexpr (std::is_same_v<T, fields::NumberMap>) {
    std::string out;
    for (const auto& [name, x] : value) {
      out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", key_text(name), number(x));
    }
    return out.empty() ? "{}" : fmt::format("{{ {} }}", out);
  } else if constexpr (fields::is_vector<T>) {
    if constexpr (fields::is_struct<typename T::value_type>) {
      return fmt::format("{} of them", value.size());
    } else {
      std::string out;
      for (const typename T::value_type& x : value) out += (out.empty() ? "" : ", ") + text(x);
      return fmt::format("[{}]", out);
    }
  }
}

template <class T>
void TomlPrinter::append_table(const char* key, T& value, const char* header) {
  const std::string path = table_.empty() ? std::string(key) : table_ + "." + key;
  TomlPrinter printer(path, comments_);
  describe(printer, value);
  tables_ += fmt::format("\n{}\n{}", fmt::format(fmt::runtime(header), path), printer.finish());
}

}  // namespace zaya
