#pragma once
// The bytes of a file, decompressed on the way when its name ends in .gz or .zst.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace zaya {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Up to `bytes` bytes; 0 only at the end. Error for compressed data that is broken or cut short.
  virtual size_t read(char* data, size_t bytes) = 0;
  // Bytes of the stored file used so far.
  virtual int64_t consumed() const = 0;
};

std::unique_ptr<ByteSource> open_byte_source(const std::filesystem::path& path);

inline constexpr size_t kMaxDocumentBytes = size_t{1} << 30;

// Lines out of a ByteSource.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path);

  // Appends the next line with its newline, if it has one; false at the end. Error when `line`
  // would grow beyond kMaxDocumentBytes.
  bool append_line(std::string& line);
  // Appends all that is left.
  void append_rest(std::string& text);
  int64_t consumed() const { return source_->consumed(); }

 private:
  bool fill();
  void append(std::string& text, size_t bytes);

  std::string path_;
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace zaya
