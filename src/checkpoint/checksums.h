#pragma once
// Checksums of a file, piece by piece: taken while it is written, kept in a checkpoint's manifest,
// checked before the file is trusted. Pieces are short enough to say where a file went bad.

#include <cstdint>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/hash.h"
#include "core/json.h"

namespace zaya {

inline constexpr uint64_t kChecksumChunk = uint64_t{64} << 20;

struct ChunkSum {
  std::string part;  // what the bytes are: "header", a tensor's name, or empty
  uint64_t bytes = 0;
  uint64_t xxh3 = 0;
};

struct FileSums {
  std::string name;  // in its folder
  uint64_t bytes = 0;
  std::vector<ChunkSum> chunks;  // one after the other, covering the file
};

// A durable file that sums what passes through it.
class ChecksummedFile {
 public:
  explicit ChecksummedFile(const fs::path& path) : file_(path) {}
  // What the bytes from here on are. Starts a new chunk.
  void begin_part(std::string_view part);
  void write(const void* data, size_t bytes);
  // Puts the file on disk under its name.
  FileSums finish();
  const fs::path& path() const { return file_.path(); }

 private:
  void end_chunk();

  DurableFile file_;
  FileSums sums_;
  Xxh3 hash_;
  std::string part_;
  uint64_t chunk_bytes_ = 0;
};

// Reads folder/sums.name and throws an Error that names the file and the part when it is missing,
// has another length or other bytes.
void verify_file(const fs::path& folder, const FileSums& sums);

Json to_json(const FileSums& sums);
// Checks everything: a plain name, chunk lengths that add up, well-formed sums.
FileSums file_sums_from_json(const Json& value, const std::string& place);

}  // namespace zaya
