#include "data/byte_source.h"

#include <zlib.h>
#include <zstd.h>

#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/file.h"

namespace zaya {

namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(const fs::path& path) : file_(path) {}
  size_t read(char* data, size_t bytes) override {
    const size_t count = file_.read(data, bytes);
    consumed_ += static_cast<int64_t>(count);
    return count;
  }
  int64_t consumed() const override { return consumed_; }

 private:
  InputFile file_;
  int64_t consumed_ = 0;
};

// A compressed file's bytes, a buffer at a time.
class Input {
 public:
  explicit Input(const fs::path& path) : file_(path), buffer_(kBufferBytes) {}
  // Reads more once everything was used; false at the end of the file.
  bool refill() {
    if (begin_ < end_) return true;
    begin_ = 0;
    end_ = file_.read(buffer_.data(), buffer_.size());
    consumed_ += static_cast<int64_t>(end_);
    return end_ > 0;
  }
  char* data() { return buffer_.data() + begin_; }
  size_t size() const { return end_ - begin_; }
  void use(size_t bytes) { begin_ += bytes; }
  int64_t consumed() const { return consumed_ - static_cast<int64_t>(size()); }
  std::string path() const { return file_.path().string(); }

 private:
  InputFile file_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  int64_t consumed_ = 0;
};

// One or more gzip members after each other, as gzip itself accepts them.
class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(const fs::path& path) : input_(path) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) fail("{}: zlib failed to start", input_.path());
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  size_t read(char* data, size_t bytes) override {
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(bytes, kBufferBytes));
    const uInt wanted = stream_.avail_out;
    while (stream_.avail_out == wanted) {
      if (!input_.refill()) {
        if (between_members_) return 0;
        fail("{}: truncated: the gzip data ends in the middle", input_.path());
      }
      step();
    }
    return wanted - stream_.avail_out;
  }
  int64_t consumed() const override { return input_.consumed(); }

 private:
  void step() {
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(input_.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    input_.use(input_.size() - stream_.avail_in);
    between_members_ = result == Z_STREAM_END;
    if (between_members_) {
      inflateReset(&stream_);
    } else if (result != Z_OK) {
      fail("{}: wanted gzip data, got something else at byte {} ({})", input_.path(), consumed(),
           stream_.msg != nullptr ? stream_.msg : "zlib error");
    }
  }

  Input input_;
  z_stream stream_{};
  bool between_members_ = false;
};

class ZstdSource final : public ByteSource {
 public:
  explicit ZstdSource(const fs::path& path) : input_(path), stream_(ZSTD_createDCtx()) {
    if (!stream_) throw std::bad_alloc();
  }

  size_t read(char* data, size_t bytes) override {
    ZSTD_outBuffer out{data, bytes, 0};
    while (out.pos == 0) {
      // Once a frame is flushed, waiting_ is 0; before that, output may be left without new input.
      if (!input_.refill() && !flushing_) {
        if (waiting_ == 0 && started_) return 0;
        fail("{}: truncated: the zstd data ends in the middle", input_.path());
      }
      ZSTD_inBuffer in{input_.data(), input_.size(), 0};
      waiting_ = ZSTD_decompressStream(stream_.get(), &out, &in);
      if (ZSTD_isError(waiting_)) {
        fail("{}: wanted zstd data, got something else at byte {} ({})", input_.path(), consumed(),
             ZSTD_getErrorName(waiting_));
      }
      started_ = true;
      flushing_ = waiting_ != 0 && out.pos == out.size;
      input_.use(in.pos);
    }
    return out.pos;
  }
  int64_t consumed() const override { return input_.consumed(); }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* stream) const { ZSTD_freeDCtx(stream); }
  };
  Input input_;
  std::unique_ptr<ZSTD_DCtx, Free> stream_;
  size_t waiting_ = 0;
  bool started_ = false;
  bool flushing_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_byte_source(const fs::path& path) {
  if (path.extension() == ".gz") return std::make_unique<GzipSource>(path);
  if (path.extension() == ".zst") return std::make_unique<ZstdSource>(path);
  return std::make_unique<PlainSource>(path);
}

LineReader::LineReader(const fs::path& path)
    : path_(path.string()), source_(open_byte_source(path)), buffer_(kBufferBytes, '\0') {
  // A byte order mark is no part of the text.
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  while (end_ < kMark.size()) {
    const size_t count = source_->read(buffer_.data() + end_, buffer_.size() - end_);
    if (count == 0) break;
    end_ += count;
  }
  if (std::string_view(buffer_.data(), end_).starts_with(kMark)) begin_ = kMark.size();
}

bool LineReader::fill() {
  if (begin_ < end_) return true;
  begin_ = 0;
  end_ = source_->read(buffer_.data(), buffer_.size());
  return end_ > 0;
}

void LineReader::append(std::string& text, size_t bytes) {
  if (text.size() + bytes > kMaxDocumentBytes) {
    fail("{}: wanted documents of at most {} bytes, got a longer one", path_, kMaxDocumentBytes);
  }
  text.append(buffer_, begin_, bytes);
  begin_ += bytes;
}

bool LineReader::append_line(std::string& line) {
  bool any = false;
  while (fill()) {
    any = true;
    const void* newline = std::memchr(buffer_.data() + begin_, '\n', end_ - begin_);
    if (newline != nullptr) {
      append(line,
             static_cast<size_t>(static_cast<const char*>(newline) - buffer_.data()) + 1 - begin_);
      return true;
    }
    append(line, end_ - begin_);
  }
  return any;
}

void LineReader::append_rest(std::string& text) {
  while (fill()) append(text, end_ - begin_);
}

}  // namespace zaya
