#include "core/toml.h"

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "core/file.h"

namespace zaya {

struct TomlDocument::Impl {
  std::string name;
  toml::table root;
  std::map<std::string, std::string> overrides;  // path -> text as given
};

namespace {

// No recipe is longer; a token store given in its place is.
constexpr uint64_t kMaxBytes = uint64_t{16} << 20;

const toml::node* node_of(const void* node) { return static_cast<const toml::node*>(node); }

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "a date or time";
  }
}

// What a value is, for "got ...": its text where that is short, else its type.
std::string shown(const toml::node& node) {
  if (const auto* v = node.as_boolean()) return v->get() ? "true" : "false";
  if (const auto* v = node.as_integer()) return fmt::format("{}", v->get());
  if (const auto* v = node.as_floating_point()) return fmt::format("{}", v->get());
  if (const auto* v = node.as_string(); v != nullptr && v->get().size() <= 60)
    return fmt::format("\"{}\"", v->get());
  return std::string(type_name(node));
}

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
}

// One step of a path: a key, or an index into an array.
struct Step {
  std::string key;
  size_t index = 0;
  bool is_index = false;
};

bool read_index(std::string_view text, size_t& at, Step& step) {
  const size_t close = text.find(']', at);
  if (close == std::string_view::npos || close == at + 1 || close - at > 9) return false;
  step.is_index = true;
  for (size_t i = at + 1; i < close; ++i) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) return false;
    step.index = step.index * 10 + static_cast<size_t>(text[i] - '0');
  }
  at = close + 1;
  return true;
}

// "phases[0].seq_len" as key phases, index 0, key seq_len. Empty when it is not a path.
std::vector<Step> split_path(std::string_view text) {
  std::vector<Step> steps;
  size_t at = 0;
  while (at < text.size()) {
    Step step;
    if (text[at] == '[' && !steps.empty()) {
      if (!read_index(text, at, step)) return {};
    } else {
      if (!steps.empty()) {
        if (text[at] != '.') return {};
        ++at;
      }
      const size_t end = std::min(text.find_first_of(".[", at), text.size());
      step.key = std::string(text.substr(at, end - at));
      if (step.key.empty()) return {};
      at = end;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

const toml::node* find_path(const toml::table& root, std::string_view path) {
  const toml::node* node = &root;
  for (const Step& step : split_path(path)) {
    if (step.is_index) {
      node = node->as_array() != nullptr ? node->as_array()->get(step.index) : nullptr;
    } else {
      node = node->as_table() != nullptr ? node->as_table()->get(step.key) : nullptr;
    }
    if (node == nullptr) return nullptr;
  }
  return node;
}

// The one value in `text`, as a table {value = ...}; a string where it is not TOML.
toml::table parse_value(const std::string& text) {
  try {
    toml::table table = toml::parse("value = " + text);
    if (table.size() == 1 && text.find('\n') == std::string::npos) return table;
  } catch (const toml::parse_error&) {
    // A bare word such as bf16 or runs/data: a string, below.
  }
  return toml::table{{"value", text}};
}

toml::table parse_text(std::string_view text, const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    fail("{}: line {}: wanted TOML, got an error: {}", name, error.source().begin.line,
         error.description());
  }
}

}  // namespace

TomlDocument::TomlDocument(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TomlDocument::~TomlDocument() = default;
TomlDocument::TomlDocument(TomlDocument&&) noexcept = default;

TomlDocument TomlDocument::read_file(const std::string& path) {
  return parse(zaya::read_file(path, kMaxBytes), path);
}

TomlDocument TomlDocument::parse(std::string_view text, std::string name) {
  auto impl = std::make_unique<Impl>();
  impl->root = parse_text(text, name);
  impl->name = std::move(name);
  return TomlDocument(std::move(impl));
}

const void* TomlDocument::root() const { return static_cast<const toml::node*>(&impl_->root); }

const std::string& TomlDocument::name() const { return impl_->name; }

void TomlDocument::set(std::string_view assignment) {
  const size_t equals = assignment.find('=');
  const std::string path = trimmed(assignment.substr(0, equals));
  const std::vector<Step> steps = split_path(path);
  if (equals == std::string_view::npos || steps.empty() || steps.back().is_index)
    fail("--set {}: wanted path=value, such as optimizer.muon_learning_rate=0.01", assignment);
  const std::string text = trimmed(assignment.substr(equals + 1));

  toml::node* node = &impl_->root;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.is_index) {
      toml::array* array = node->as_array();
      node = array != nullptr ? array->get(step.index) : nullptr;
      if (node == nullptr)
        fail("--set {}: wanted an index below {}, got {}", assignment,
             array != nullptr ? array->size() : 0, step.index);
    } else {
      toml::table* table = node->as_table();
      if (table == nullptr) fail("--set {}: wanted a table before .{}", assignment, step.key);
      if (!table->contains(step.key)) {
        if (steps[i + 1].is_index)
          fail("--set {}: wanted an array in the file, got no {}", assignment, step.key);
        table->insert(step.key, toml::table{});
      }
      node = table->get(step.key);
    }
  }
  toml::table* table = node->as_table();
  if (table == nullptr) fail("--set {}: wanted a table before .{}", assignment, steps.back().key);
  toml::table value = parse_value(text);
  table->insert_or_assign(steps.back().key, std::move(*value.get("value")));
  impl_->overrides[path] = text;
}

void TomlDocument::fail_at(std::string_view path, std::string_view wanted,
                           std::string_view got) const {
  std::string where;
  if (impl_->overrides.count(std::string(path)) != 0) {
    where = " (from --set)";
  } else if (const toml::node* node = find_path(impl_->root, path);
             node != nullptr && node->source().begin.line > 0) {
    where = fmt::format(" (line {})", node->source().begin.line);
  }
  fail("{}: {}: wanted {}, got {}{}", impl_->name, path, wanted, got, where);
}

// ---- TomlReader ----

const void* TomlReader::find(const char* key) const {
  if (table_ == nullptr) return nullptr;
  return node_of(table_)->as_table()->get(key);
}

std::string TomlReader::child(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void TomlReader::wrong(const std::string& path, std::string_view wanted,
                       std::string_view got) const {
  document_.fail_at(path, wanted, got);
}

void TomlReader::finish() const {
  if (table_ == nullptr) return;
  for (const auto& [key, node] : *node_of(table_)->as_table()) {
    const std::string name(key.str());
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    document_.fail_at(child(name), fmt::format("one of {}", fmt::join(known_, ", ")),
                      "an unknown key");
  }
}

const void* TomlReader::as_table(const void* node, const std::string& path) const {
  if (node != nullptr && !node_of(node)->is_table()) wrong(path, "a table", shown(*node_of(node)));
  return node;
}

std::vector<const void*> TomlReader::elements(const void* node, const std::string& path) const {
  const toml::array* array = node_of(node)->as_array();
  if (array == nullptr) wrong(path, "an array", shown(*node_of(node)));
  std::vector<const void*> out;
  for (const toml::node& element : *array) out.push_back(&element);
  return out;
}

bool TomlReader::as_bool(const void* node, const std::string& path) const {
  const auto* value = node_of(node)->as_boolean();
  if (value == nullptr) wrong(path, "true or false", shown(*node_of(node)));
  return value->get();
}

int64_t TomlReader::as_integer(const void* node, const std::string& path, int64_t low,
                               int64_t high) const {
  int64_t value = 0;
  if (const auto* integer = node_of(node)->as_integer()) {
    value = integer->get();
  } else {
    const auto* number = node_of(node)->as_floating_point();
    // Below 2^53 a double is an exact integer.
    if (number == nullptr || std::floor(number->get()) != number->get() ||
        !(std::fabs(number->get()) <= 0x1p53))
      wrong(path, "an integer", shown(*node_of(node)));
    value = static_cast<int64_t>(number->get());
  }
  if (value < low || value > high)
    wrong(path, fmt::format("{} to {}", low, high), fmt::format("{}", value));
  return value;
}

double TomlReader::as_number(const void* node, const std::string& path) const {
  const auto value = node_of(node)->value<double>();
  if (!value || !node_of(node)->is_number()) wrong(path, "a number", shown(*node_of(node)));
  if (!std::isfinite(*value)) wrong(path, "a finite number", shown(*node_of(node)));
  return *value;
}

std::string TomlReader::as_string(const void* node, const std::string& path) const {
  if (const auto* value = node_of(node)->as_string()) return value->get();
  // --set name=2024 means the string.
  const auto& overrides = document_.impl_->overrides;
  if (const auto found = overrides.find(path); found != overrides.end()) return found->second;
  wrong(path, "a string", shown(*node_of(node)));
}

fields::NumberMap TomlReader::as_number_map(const void* node, const std::string& path) const {
  fields::NumberMap map;
  for (const auto& [key, value] : *node_of(as_table(node, path))->as_table()) {
    const std::string name(key.str());
    map[name] = as_number(&value, path + "." + name);
  }
  return map;
}

// ---- TomlPrinter ----

void TomlPrinter::line(const char* key, const std::string& value, const char* help) {
  std::string text = fmt::format("{} = {}", key, value);
  if (comments_) text = fmt::format("{:<40} # {}", text, help);
  scalars_ += text + "\n";
}

std::string TomlPrinter::number(double value) {
  std::string text = fmt::format("{}", value);
  // 1 is an integer in TOML; a number that may have a fraction shows one.
  if (text.find_first_of(".ein") == std::string::npos) text += ".0";
  return text;
}

std::string TomlPrinter::quoted(std::string_view value) {
  std::string out = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string TomlPrinter::key_text(std::string_view key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  return bare ? std::string(key) : quoted(key);
}

}  // namespace zaya
