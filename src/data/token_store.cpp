#include "data/token_store.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/ceil_div.h"
#include "core/error.h"
#include "core/hash.h"

namespace zaya {

static_assert(std::endian::native == std::endian::little, "the files are little endian");

namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kDtypeAt = 17;
constexpr uint64_t kCountsAt = 18;
constexpr uint64_t kHeaderBytes = 34;
constexpr int32_t kNarrowVocab = 65536;

std::string stem_of(const std::string& prefix) {
  const fs::path path(prefix);
  const bool suffixed = path.extension() == ".bin" || path.extension() == ".idx";
  return suffixed ? prefix.substr(0, prefix.size() - 4) : prefix;
}

DType dtype_of_code(uint8_t code, const std::string& path) {
  switch (code) {
    case 1:
      return DType::u8;
    case 2:
      return DType::i8;
    case 3:
      return DType::i16;
    case 4:
      return DType::i32;
    case 5:
      return DType::i64;
    case 8:
      return DType::u16;
    case 6:
    case 7:
      fail("{}: wanted integer tokens, got dtype code {} (floating point)", path, code);
    default:
      fail("{}: wanted dtype code 1 to 5 or 8, got {}", path, code);
  }
}

// Tokenising takes hours: a place where the files cannot go is refused before it.
std::string checked_prefix(const std::string& prefix) {
  const std::string stem = stem_of(prefix);
  if (!fs::path(stem).has_filename())
    fail("\"{}\": wanted a folder and a name, such as data/train, got no name", prefix);
  std::error_code ignored;
  for (const char* suffix : {".bin", ".idx"})
    if (fs::is_directory(stem + suffix, ignored))
      fail("{}{}: wanted to write a file, got a folder of that name", stem, suffix);
  return stem;
}

template <class T>
void copy_as_int32(const std::byte* data, std::span<int32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    out[i] = static_cast<int32_t>(value);
    if constexpr (sizeof(T) == 8) {
      if (value != static_cast<T>(out[i])) out[i] = -1;
    }
  }
}

}  // namespace

template <class T>
T TokenStore::load(uint64_t offset) const {
  T value;
  std::memcpy(&value, idx_.data() + offset, sizeof(T));
  return value;
}

TokenStore::TokenStore(const std::string& prefix)
    : idx_(stem_of(prefix) + ".idx"), bin_(stem_of(prefix) + ".bin") {
  read_header();
  check_sequences();
  check_documents();
  tokens_ = static_cast<int64_t>(bin_.size() / size_of(dtype_));
}

void TokenStore::read_header() {
  const std::string path = idx_.path().string();
  if (idx_.size() < kHeaderBytes) {
    fail("{}: truncated: wanted at least {} bytes, got {}", path, kHeaderBytes, idx_.size());
  }
  if (idx_.text().substr(0, kMagic.size()) != kMagic) {
    fail("{}: wanted a Megatron index that begins with MMIDIDX, got something else", path);
  }
  const uint64_t version = load<uint64_t>(kMagic.size());
  if (version != 1) fail("{}: wanted version 1, got {}", path, version);
  dtype_ = dtype_of_code(load<uint8_t>(kDtypeAt), path);

  const uint64_t sequences = load<uint64_t>(kCountsAt);
  const uint64_t boundaries = load<uint64_t>(kCountsAt + 8);
  const uint64_t most = idx_.size() / 8;  // keeps the sum below from wrapping
  if (sequences > most || boundaries > most ||
      idx_.size() != kHeaderBytes + 12 * sequences + 8 * boundaries) {
    fail("{}: wanted the size that {} sequences and {} document indices take, got {} bytes", path,
         sequences, boundaries, idx_.size());
  }
  if (boundaries == 0) fail("{}: wanted at least one document index, got none", path);
  sequences_ = static_cast<int64_t>(sequences);
  documents_ = static_cast<int64_t>(boundaries) - 1;
  pointers_at_ = kHeaderBytes + 4 * sequences;
  documents_at_ = pointers_at_ + 8 * sequences;
}

void TokenStore::check_sequences() const {
  const std::string path = idx_.path().string();
  const int64_t token_bytes = static_cast<int64_t>(size_of(dtype_));
  const int64_t bin_bytes = static_cast<int64_t>(bin_.size());
  int64_t expected = 0;
  for (int64_t s = 0; s < sequences_; ++s) {
    const int64_t length = load<int32_t>(kHeaderBytes + 4 * static_cast<uint64_t>(s));
    const int64_t pointer = load<int64_t>(pointers_at_ + 8 * static_cast<uint64_t>(s));
    if (length < 0) fail("{}: sequence {}: wanted a length of 0 or more, got {}", path, s, length);
    if (pointer != expected) {
      fail("{}: sequence {}: wanted byte offset {} (the end of the one before), got {}", path, s,
           expected, pointer);
    }
    expected += length * token_bytes;
    if (expected > bin_bytes) {
      fail("{}: sequence {} ends at byte {}, but {} has {} bytes", path, s, expected,
           bin_.path().string(), bin_bytes);
    }
  }
  if (expected != bin_bytes) {
    fail("{}: wanted {} bytes, as {} says, got {}", bin_.path().string(), expected, path,
         bin_bytes);
  }
}

void TokenStore::check_documents() const {
  const std::string path = idx_.path().string();
  int64_t before = 0;
  for (int64_t d = 0; d <= documents_; ++d) {
    const int64_t sequence = load<int64_t>(documents_at_ + 8 * static_cast<uint64_t>(d));
    if (sequence < before || sequence > sequences_ || (d == 0 && sequence != 0)) {
      fail("{}: document index {}: wanted {} to {}, got {}", path, d, before,
           d == 0 ? 0 : sequences_, sequence);
    }
    before = sequence;
  }
  if (before != sequences_) {
    fail("{}: the last document index: wanted {}, got {}", path, sequences_, before);
  }
}

uint64_t TokenStore::fingerprint() const {
  constexpr uint64_t kBlock = 4096, kBlocks = 1024;
  Xxh3 hash;
  hash.update(idx_.data(), idx_.size());
  const uint64_t blocks = ceil_div<uint64_t>(bin_.size(), kBlock);
  const uint64_t taken = std::min(blocks, kBlocks);
  for (uint64_t i = 0; i < taken; ++i) {
    const uint64_t begin = blocks * i / taken * kBlock;
    hash.update(bin_.data() + begin, std::min(kBlock, bin_.size() - begin));
  }
  return hash.digest();
}

int64_t TokenStore::sequence_begin(int64_t s) const {
  if (s == sequences_) return tokens_;
  return load<int64_t>(pointers_at_ + 8 * static_cast<uint64_t>(s)) /
         static_cast<int64_t>(size_of(dtype_));
}

int64_t TokenStore::document_begin(int64_t d) const {
  ZAYA_REQUIRE(d >= 0 && d <= documents_);
  return sequence_begin(load<int64_t>(documents_at_ + 8 * static_cast<uint64_t>(d)));
}

void TokenStore::copy(int64_t begin, std::span<int32_t> out) const {
  ZAYA_REQUIRE(begin >= 0 && begin + static_cast<int64_t>(out.size()) <= tokens_);
  const std::byte* data = bin_.data() + static_cast<size_t>(begin) * size_of(dtype_);
  switch (dtype_) {
    case DType::u8:
      return copy_as_int32<uint8_t>(data, out);
    case DType::i8:
      return copy_as_int32<int8_t>(data, out);
    case DType::i16:
      return copy_as_int32<int16_t>(data, out);
    case DType::u16:
      return copy_as_int32<uint16_t>(data, out);
    case DType::i32:
      return copy_as_int32<int32_t>(data, out);
    default:
      return copy_as_int32<int64_t>(data, out);
  }
}

// ---- Writing ------------------------------------------------------------------------------------

TokenStoreWriter::TokenStoreWriter(const std::string& prefix, int32_t vocab_size)
    : prefix_(checked_prefix(prefix)),
      vocab_size_(vocab_size),
      dtype_(vocab_size <= kNarrowVocab ? DType::u16 : DType::i32),
      bin_(prefix_ + ".bin"),
      idx_(prefix_ + ".idx") {}

void TokenStoreWriter::add_document(std::span<const int32_t> ids) {
  if (ids.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    fail("{}: document {}: wanted at most 2^31 - 1 tokens, got {}", prefix_, documents(),
         ids.size());
  }
  for (const int32_t id : ids) ZAYA_REQUIRE(id >= 0 && id < vocab_size_);
  if (dtype_ == DType::u16) {
    narrow_.assign(ids.begin(), ids.end());
    bin_.write(narrow_.data(), 2 * ids.size());
  } else {
    bin_.write(ids.data(), 4 * ids.size());
  }
  lengths_.push_back(static_cast<int32_t>(ids.size()));
  tokens_ += static_cast<int64_t>(ids.size());
}

void TokenStoreWriter::finish() {
  const auto put = [this](auto value) { idx_.write(&value, sizeof value); };
  const uint64_t sequences = lengths_.size();
  idx_.write(kMagic);
  put(uint64_t{1});
  put(static_cast<uint8_t>(dtype_ == DType::u16 ? 8 : 4));
  put(sequences);
  put(sequences + 1);
  idx_.write(lengths_.data(), 4 * sequences);
  int64_t pointer = 0;
  for (const int32_t length : lengths_) {
    put(pointer);
    pointer += length * static_cast<int64_t>(size_of(dtype_));
  }
  for (uint64_t d = 0; d <= sequences; ++d) put(static_cast<int64_t>(d));

  // From here on nothing can run out of space: an older store is lost only for a whole new one.
  bin_.sync();
  idx_.sync();
  // An old index must not be found beside the new tokens, even if the power fails in between.
  std::error_code ignored;  // most often there is none
  if (fs::remove(prefix_ + ".idx", ignored)) {
    const fs::path folder = fs::path(prefix_).parent_path();
    sync_folder(folder.empty() ? fs::path(".") : folder);
  }
  bin_.finish();
  idx_.finish();
}

}  // namespace zaya
