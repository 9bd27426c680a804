#include "data/text_reader.h"

#include <optional>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "data/byte_source.h"

namespace zaya {

namespace {

bool is_json_lines(const fs::path& path) {
  fs::path name = path.filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  const std::string kind = name.extension().string();
  if (kind == ".jsonl" || kind == ".ndjson") return true;
  if (kind == ".txt" || kind == ".text" || kind == ".md") return false;
  fail("{}: wanted a name that ends in .txt or .jsonl, or those with .gz or .zst", path.string());
}

int64_t size_of_file(const std::string& path) {
  return static_cast<int64_t>(InputFile(path).size());
}

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void drop_last_newline(std::string& text) { text.resize(without_line_end(text).size()); }

}  // namespace

struct TextReader::Impl {
  std::vector<std::string> paths;
  TextOptions options;
  size_t file = 0;         // of paths, the next to open
  int64_t done_bytes = 0;  // of the files before the open one
  int64_t total_bytes = 0;
  int64_t line_number = 0;
  bool json = false;
  std::optional<LineReader> lines;
  std::string line;

  bool open_next() {
    if (lines) {
      done_bytes += size_of_file(paths[file - 1]);
      lines.reset();
    }
    if (file == paths.size()) return false;
    json = is_json_lines(paths[file]);
    lines.emplace(paths[file++]);
    line_number = 0;
    return true;
  }
  // Each reads one document of the open file, perhaps an empty one; false at the end of the file.
  bool next_whole_file(std::string& document) {
    if (line_number++ > 0) return false;
    lines->append_rest(document);
    return true;
  }
  bool next_separated(std::string& document);
  bool next_json(std::string& document);

  bool next_in_file(std::string& document) {
    if (json) return next_json(document);
    return options.separator.empty() ? next_whole_file(document) : next_separated(document);
  }
};

bool TextReader::Impl::next_separated(std::string& document) {
  bool any = false;
  while (true) {
    const size_t before = document.size();
    if (!lines->append_line(document)) break;
    any = true;
    if (without_line_end(std::string_view(document).substr(before)) == options.separator) {
      document.resize(before);
      break;
    }
  }
  drop_last_newline(document);
  return any;
}

bool TextReader::Impl::next_json(std::string& document) {
  line.clear();
  if (!lines->append_line(line)) return false;
  ++line_number;
  const std::string_view text = without_line_end(line);
  if (text.find_first_not_of(" \t") == std::string_view::npos) return true;
  const std::string place = fmt::format("{}:{}", paths[file - 1], line_number);
  const Json value = parse_json(text, place);
  document = JsonObject(value, place).string(options.field);
  return true;
}

TextReader::TextReader(std::vector<std::string> paths, TextOptions options)
    : impl_(std::make_unique<Impl>()) {
  if (paths.empty()) fail("input files: wanted at least one, got none");
  if (options.separator.find_first_of("\r\n") != std::string::npos) {
    fail("separator: wanted the text of one line, got a line break in it");
  }
  for (const std::string& path : paths) {
    is_json_lines(path);
    impl_->total_bytes += size_of_file(path);
  }
  impl_->paths = std::move(paths);
  impl_->options = std::move(options);
}

TextReader::~TextReader() = default;
TextReader::TextReader(TextReader&&) noexcept = default;

bool TextReader::next(std::string& document) {
  while (true) {
    document.clear();
    if (impl_->lines && impl_->next_in_file(document)) {
      if (!document.empty()) return true;
    } else if (!impl_->open_next()) {
      return false;
    }
  }
}

int64_t TextReader::bytes_read() const {
  return impl_->done_bytes + (impl_->lines ? impl_->lines->consumed() : 0);
}

int64_t TextReader::total_bytes() const { return impl_->total_bytes; }

}  // namespace zaya
