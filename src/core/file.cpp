#include "core/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "core/error.h"

namespace zaya {
namespace {

// Writes of fewer bytes are gathered, larger ones go to the kernel as they are.
constexpr size_t kWriteBuffer = size_t{1} << 20;
// Linux moves at most 2 GiB - 4 KiB per call.
constexpr size_t kLargestCall = size_t{1} << 30;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

FileDescriptor open_for_reading(const fs::path& path) {
  // O_NONBLOCK: a named pipe without a writer must not hang the program; it has no effect on files.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail_errno("cannot open", path.string());
  return FileDescriptor(fd);
}

// The size of a regular file; Error for folders, pipes and devices.
uint64_t regular_size(const FileDescriptor& file, const fs::path& path) {
  struct stat status;
  if (::fstat(file.get(), &status) != 0) fail_errno("cannot stat", path.string());
  if (S_ISDIR(status.st_mode)) fail("{}: wanted a file, got a folder", path.string());
  if (!S_ISREG(status.st_mode)) fail("{}: wanted a regular file", path.string());
  return static_cast<uint64_t>(status.st_size);
}

size_t read_some(const FileDescriptor& file, const fs::path& path, void* data, size_t bytes) {
  for (;;) {
    const ssize_t got = ::read(file.get(), data, std::min(bytes, kLargestCall));
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) fail_errno("cannot read", path.string());
  }
}

void sync_file(const FileDescriptor& file, const fs::path& path) {
  while (::fsync(file.get()) != 0)
    if (errno != EINTR) fail_errno("cannot sync", path.string());
}

}  // namespace

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int FileDescriptor::close() {
  const int fd = std::exchange(fd_, -1);
  return fd < 0 ? 0 : ::close(fd);
}

std::string read_file(const fs::path& path, uint64_t max_bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_errno("cannot open", path.string());
  const FileDescriptor file(fd);
  std::string text;
  std::array<char, 65536> piece;
  while (const size_t got = read_some(file, path, piece.data(), piece.size())) {
    if (got > max_bytes - text.size())
      fail("{}: wanted at most {} bytes, got more", path.string(), max_bytes);
    text.append(piece.data(), got);
  }
  return text;
}

InputFile::InputFile(const fs::path& path)
    : path_(path), file_(open_for_reading(path)), size_(regular_size(file_, path)) {}

size_t InputFile::read(void* data, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const size_t got = read_some(file_, path_, static_cast<char*>(data) + done, bytes - done);
    if (got == 0) break;
    done += got;
  }
  return done;
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  const FileDescriptor file = open_for_reading(path);
  size_ = regular_size(file, path);
  if (size_ == 0) return;
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) fail_errno("cannot map", path.string());
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(const void* begin, size_t bytes) const {
  const auto map = reinterpret_cast<uintptr_t>(data_), from = reinterpret_cast<uintptr_t>(begin);
  if (from < map || from + bytes > map + size_ || bytes == 0) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = from / page * page;
  // Only advice: where it fails, the memory is taken longer.
  (void)::madvise(reinterpret_cast<void*>(first), from + bytes - first, MADV_DONTNEED);
}

DurableFile::DurableFile(const fs::path& path) : path_(path) {
  // O_EXCL and a counter: neither two threads nor two machines on a shared disk write to one file.
  static std::atomic<unsigned> counter{0};
  for (;;) {
    std::string name =
        fmt::format(".{}.{}-{}.tmp", path.filename().string(), ::getpid(), counter.fetch_add(1));
    fs::path temporary = folder_of(path) / name;
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) fail_errno("cannot create", path.string());
    file_ = FileDescriptor(fd);
    temporary_ = temporary.string();
    return;
  }
}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::move(other.file_)),
      buffer_(std::move(other.buffer_)),
      written_(other.written_) {}

DurableFile::~DurableFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void DurableFile::write(const void* data, size_t bytes) {
  ZAYA_REQUIRE(!temporary_.empty());
  const char* from = static_cast<const char*>(data);
  if (buffer_.size() + bytes > kWriteBuffer) flush();
  if (bytes >= kWriteBuffer) {
    write_through(from, bytes);
  } else {
    buffer_.insert(buffer_.end(), from, from + bytes);
  }
  written_ += bytes;
}

void DurableFile::flush() {
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void DurableFile::write_through(const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t done = ::write(file_.get(), data, std::min(bytes, kLargestCall));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && (errno == ENOSPC || errno == EDQUOT))
      fail("no space left on {}: wanted {} more bytes for {}", folder_of(path_).string(), bytes,
           path_.filename().string());
    if (done < 0) fail_errno("cannot write", path_.string());
    data += done;
    bytes -= static_cast<size_t>(done);
  }
}

void DurableFile::sync() {
  ZAYA_REQUIRE(!temporary_.empty());
  flush();
  sync_file(file_, path_);
}

void DurableFile::finish() {
  sync();
  // Network file systems may report a failed write only here.
  if (file_.close() != 0) fail_errno("cannot close", path_.string());
  rename_durably(temporary_, path_);
  temporary_.clear();
}

void write_file_durably(const fs::path& path, std::string_view bytes) {
  DurableFile file(path);
  file.write(bytes);
  file.finish();
}

void sync_folder(const fs::path& path) {
  const fs::path folder = path.empty() ? fs::path(".") : path;
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_errno("cannot open", folder.string());
  const FileDescriptor file(fd);
  // Some file systems cannot sync a folder and say so; there is nothing better to do on them.
  while (::fsync(file.get()) != 0 && errno != EINVAL)
    if (errno != EINTR) fail_errno("cannot sync", folder.string());
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    fail_errno(fmt::format("cannot rename {} to", from.string()), to.string());
  sync_folder(folder_of(to));
}

}  // namespace zaya
