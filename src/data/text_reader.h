#pragma once
// Documents out of text files: .txt (also .text, .md) and .jsonl (also .ndjson), each also
// compressed as .gz or .zst. One document at a time is in memory, never a file.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zaya {

struct TextOptions {
  // Text files: a line that holds only this ends a document ("%" in fortune files); the newline
  // before it is no part of the document, nor is the last newline of the file. Empty: a file is one
  // document, byte for byte.
  std::string separator = "";
  // JSON lines: the member of each object that holds the text.
  std::string field = "text";
};

class TextReader {
 public:
  // Error at once for a path that does not exist or whose name ends in none of the above.
  TextReader(std::vector<std::string> paths, TextOptions options);
  ~TextReader();
  TextReader(TextReader&&) noexcept;

  // The next document that is not empty; false after the last. Errors say "file:line: ..." where
  // lines mean something.
  bool next(std::string& document);

  // Progress, in bytes of the files as they are stored.
  int64_t bytes_read() const;
  int64_t total_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zaya
