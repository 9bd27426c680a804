#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "core/error.h"
#include "core/file.h"

namespace zaya {
namespace {

// A memory file system allocates what is reserved, so there the free space must suffice.
bool is_memory_file_system(const fs::path& folder) {
  struct statfs status;
  return ::statfs(folder.c_str(), &status) == 0 && status.f_type == TMPFS_MAGIC;
}

// Reserves `bytes` in a nameless file, which goes away when it is closed.
void try_reservation(const fs::path& folder, uint64_t bytes) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) {
    if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) return;  // not on this disk
    fail_errno("cannot write to", folder.string());
  }
  const FileDescriptor file(fd);
  if (::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) == 0) return;
  if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) return;
  fail_errno(fmt::format("cannot reserve {} bytes on", bytes), folder.string());
}

}  // namespace

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && fs::is_directory(path, error)) return;
  if (!error) error = std::make_error_code(std::errc::not_a_directory);
  fail("cannot create the folder {}: {}", path.string(), error.message());
}

void remove_folder(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail("cannot remove {}: {}", path.string(), error.message());
}

std::vector<std::string> list_folder(const fs::path& path) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) fail("cannot list {}: {}", path.string(), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_plain_name(std::string_view name) {
  if (name.empty() || name == "." || name == ".." || name.size() > 255) return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

uint64_t free_space(const fs::path& folder) {
  struct statvfs status;
  if (::statvfs(folder.c_str(), &status) != 0) fail_errno("cannot look at", folder.string());
  return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
}

void require_space(const fs::path& folder, uint64_t bytes) {
  const uint64_t available = free_space(folder);
  if (available < bytes)
    fail("no space left on {}: wanted {} bytes, got {}", folder.string(), bytes, available);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail_errno("cannot write to", folder.string());
  if (bytes > 0 && !is_memory_file_system(folder)) try_reservation(folder, bytes);
}

}  // namespace zaya
