#include "checkpoint/checksums.h"

#include <algorithm>

#include "core/error.h"

namespace zaya {
namespace {

constexpr size_t kReadBuffer = size_t{1} << 20;

uint64_t sum_of_next(InputFile& file, uint64_t bytes, std::vector<char>& buffer) {
  Xxh3 hash;
  while (bytes > 0) {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(bytes, buffer.size()));
    const size_t got = file.read(buffer.data(), wanted);
    if (got == 0) fail("{}: ends early", file.path().string());
    hash.update(buffer.data(), got);
    bytes -= got;
  }
  return hash.digest();
}

std::string described(const ChunkSum& chunk) {
  return chunk.part.empty() ? std::string() : json_quoted(chunk.part) + ", ";
}

}  // namespace

void ChecksummedFile::begin_part(std::string_view part) {
  end_chunk();
  part_ = part;
}

void ChecksummedFile::write(const void* data, size_t bytes) {
  file_.write(data, bytes);
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const size_t piece = std::min<uint64_t>(bytes, kChecksumChunk - chunk_bytes_);
    hash_.update(from, piece);
    chunk_bytes_ += piece;
    from += piece;
    bytes -= piece;
    if (chunk_bytes_ == kChecksumChunk) end_chunk();
  }
}

void ChecksummedFile::end_chunk() {
  if (chunk_bytes_ == 0) return;
  sums_.chunks.push_back({part_, chunk_bytes_, hash_.digest()});
  sums_.bytes += chunk_bytes_;
  hash_.reset();
  chunk_bytes_ = 0;
}

FileSums ChecksummedFile::finish() {
  end_chunk();
  file_.finish();
  sums_.name = file_.path().filename().string();
  return std::move(sums_);
}

void verify_file(const fs::path& folder, const FileSums& sums) {
  const std::string place = (folder / sums.name).string();
  InputFile file(folder / sums.name);
  if (file.size() != sums.bytes)
    fail("{}: wanted {} bytes, got {}", place, sums.bytes, file.size());
  std::vector<char> buffer(kReadBuffer);
  uint64_t begin = 0;
  for (const ChunkSum& chunk : sums.chunks) {
    const uint64_t sum = sum_of_next(file, chunk.bytes, buffer);
    if (sum != chunk.xxh3)
      fail("{}: {}bytes {} to {}: wanted checksum {}, got {}", place, described(chunk), begin,
           begin + chunk.bytes, to_hex(chunk.xxh3), to_hex(sum));
    begin += chunk.bytes;
  }
}

Json to_json(const FileSums& sums) {
  Json chunks = Json::array();
  for (const ChunkSum& chunk : sums.chunks) {
    Json entry = {{"bytes", chunk.bytes}, {"xxh3", to_hex(chunk.xxh3)}};
    if (!chunk.part.empty()) entry["part"] = chunk.part;
    chunks.push_back(std::move(entry));
  }
  return {{"name", sums.name}, {"bytes", sums.bytes}, {"chunks", std::move(chunks)}};
}

FileSums file_sums_from_json(const Json& value, const std::string& place) {
  const JsonObject file(value, place);
  FileSums sums;
  sums.name = file.string("name");
  if (!is_plain_name(sums.name)) file.fail_wanted("name", "a file name without folders");
  sums.bytes = file.integer("bytes");
  uint64_t left = sums.bytes;
  for (const Json& entry : file.array("chunks")) {
    const JsonObject chunk(entry, fmt::format("{}: {}", place, json_quoted(sums.name)));
    ChunkSum sum;
    sum.part = chunk.string_or("part", "");
    sum.bytes = chunk.integer("bytes", 1);
    if (sum.bytes > left) chunk.fail_wanted("bytes", fmt::format("at most {}", left));
    left -= sum.bytes;
    sum.xxh3 = from_hex(chunk.string("xxh3"));
    sums.chunks.push_back(std::move(sum));
  }
  if (left != 0) fail("{}: {}: {} bytes have no checksum", place, json_quoted(sums.name), left);
  return sums;
}

}  // namespace zaya
