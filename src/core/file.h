#pragma once
// Files and folders, with every failure an Error that names the path and the reason.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zaya {

namespace fs = std::filesystem;

// An open file descriptor, closed at the end of its life.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  int get() const { return fd_; }
  // Closes now. Returns what close(2) returned.
  int close();

 private:
  int fd_ = -1;
};

// ---- Reading ------------------------------------------------------------------------------------

// The whole file (or pipe). A file of more than max_bytes is an Error.
std::string read_file(const fs::path& path, uint64_t max_bytes = uint64_t{1} << 30);

// A regular file read from its start to its end.
class InputFile {
 public:
  explicit InputFile(const fs::path& path);
  // Size when it was opened.
  uint64_t size() const { return size_; }
  const fs::path& path() const { return path_; }
  // Reads up to `bytes` bytes; fewer only at the end of the file.
  size_t read(void* data, size_t bytes);

 private:
  fs::path path_;
  FileDescriptor file_;
  uint64_t size_ = 0;
};

// A regular file mapped read-only. The size is fixed at opening: bytes that another process cuts
// off afterwards can no longer be read (the kernel then raises SIGBUS), bytes it appends are not
// seen.
class MappedFile {
 public:
  explicit MappedFile(const fs::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::byte* data() const { return data_; }  // null when the file is empty
  uint64_t size() const { return size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const fs::path& path() const { return path_; }
  // Lets go of the memory that holds these bytes, as far as they lie in the map; reading them again
  // fetches them again.
  void release(const void* begin, size_t bytes) const;

 private:
  fs::path path_;
  const std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

// ---- Writing ------------------------------------------------------------------------------------

// A file that appears under its name whole or not at all: written under a temporary name in the
// same folder; finish() syncs it, renames it and syncs the folder. Destroyed unfinished, it is
// removed.
class DurableFile {
 public:
  explicit DurableFile(const fs::path& path);
  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&&) = delete;
  ~DurableFile();

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Everything written so far is on the disk, still under the temporary name.
  void sync();
  void finish();

  uint64_t written() const { return written_; }
  const fs::path& path() const { return path_; }

 private:
  void flush();
  void write_through(const char* data, size_t bytes);

  fs::path path_;
  std::string temporary_;  // empty once finished (or moved from)
  FileDescriptor file_;
  std::vector<char> buffer_;
  uint64_t written_ = 0;
};

void write_file_durably(const fs::path& path, std::string_view bytes);

// ---- Folders ------------------------------------------------------------------------------------

// Creates the folder and its parents where missing.
void make_folder(const fs::path& path);
// Makes the folder's entries (new names, renames, removals) survive a power cut.
void sync_folder(const fs::path& path);
// Renames and syncs the folder that holds the names.
void rename_durably(const fs::path& from, const fs::path& to);
// Removes the folder and what it holds. Links are removed, not followed.
void remove_folder(const fs::path& path);
// The names in a folder, sorted.
std::vector<std::string> list_folder(const fs::path& path);

// True for a name that stays inside its folder: not empty, "." or "..", and without "/", "\" or
// control characters. Names that come out of files are checked with this before they are opened.
bool is_plain_name(std::string_view name);

// ---- Space --------------------------------------------------------------------------------------

// Bytes an ordinary user can still write to the file system that holds the folder.
uint64_t free_space(const fs::path& folder);
// Error unless `bytes` more bytes can be written to the folder. Besides the free space this tries a
// reservation, given back at once, so that a quota or a file size limit shows too.
void require_space(const fs::path& folder, uint64_t bytes);

}  // namespace zaya
