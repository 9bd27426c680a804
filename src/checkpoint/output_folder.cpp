#include "checkpoint/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include "checkpoint/exchange.h"
#include "core/error.h"

namespace zaya {
namespace {

// Lies in a folder that is being written, and in what a crash leaves of one. Its lock is held as
// long as the writer lives.
constexpr const char* kClaim = ".zaya-partial";

fs::path with_suffix(const fs::path& path, std::string_view suffix) {
  return path.string() + std::string(suffix);
}

void require_free(const fs::path& path, Existing existing) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  if (!fs::is_directory(path, ignored)) fail("{}: wanted a folder, found a file", path.string());
  if (existing == Existing::keep && !list_folder(path).empty())
    fail("{}: wanted a new or an empty folder, found files in it (--force replaces the folder)",
         path.string());
}

// The claim goes last: what is left of a removal that is cut short is still known for what it is.
void clear_but_claim(const fs::path& folder) {
  for (const std::string& name : list_folder(folder))
    if (name != kClaim) remove_folder(folder / name);
}

void remove_claimed(const fs::path& folder) {
  clear_but_claim(folder);
  remove_folder(folder);
}

// Left by an OutputFolder: it holds a claim, or nothing.
bool is_leftover(const fs::path& partial) {
  if (!fs::is_directory(fs::symlink_status(partial))) return false;
  return fs::is_regular_file(fs::symlink_status(partial / kClaim)) || list_folder(partial).empty();
}

}  // namespace

fs::path plain_path(const fs::path& path) {
  std::error_code error;
  fs::path plain = fs::weakly_canonical(fs::absolute(path), error).lexically_normal();
  if (error) fail("{}: {}", path.string(), error.message());
  return plain.has_filename() ? plain : plain.parent_path();
}

OutputFolder::OutputFolder(const fs::path& path, Existing existing) : path_(plain_path(path)) {
  require_free(path_, existing);
  if (!path_.has_filename()) fail("{}: wanted a folder that can be replaced", path_.string());
  partial_ = with_suffix(path_, ".partial");
  claim();
}

void OutputFolder::claim() {
  if (fs::exists(fs::symlink_status(partial_)) && !is_leftover(partial_))
    fail("{}: wanted nothing of that name (files are gathered there), found something",
         partial_.string());
  make_folder(partial_);
  const fs::path mark = partial_ / kClaim;
  claim_ = FileDescriptor(::open(mark.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (claim_.get() < 0) fail_errno("cannot create", mark.string());
  if (::flock(claim_.get(), LOCK_EX | LOCK_NB) != 0)
    fail("{}: another process is writing to it", path_.string());
  clear_but_claim(partial_);  // of what a crash left
}

OutputFolder::~OutputFolder() {
  if (committed_ || claim_.get() < 0) return;
  try {
    remove_claimed(partial_);
  } catch (const Error&) {
    // The next OutputFolder of that name tries again.
  }
}

void OutputFolder::commit() {
  sync_folder(partial_);
  std::error_code ignored;
  if (fs::exists(path_, ignored) && !list_folder(path_).empty()) {
    write_file_durably(path_ / kClaim, "");  // from now on the old folder may go
    exchange_folders(partial_, path_, with_suffix(path_, ".replaced"));
    sync_folder(path_.parent_path());
    committed_ = true;
    remove_claimed(partial_);
  } else {
    rename_durably(partial_, path_);
    committed_ = true;
  }
  remove_folder(path_ / kClaim);
}

}  // namespace zaya
