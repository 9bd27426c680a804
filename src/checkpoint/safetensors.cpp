#include "checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "core/error.h"

namespace zaya {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors holds little-endian data");

constexpr uint64_t kLengthBytes = sizeof(uint64_t);
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr uint64_t kMaxIndexBytes = 100'000'000;

// What the header says about one tensor, checked against the size of the data.
struct Entry {
  std::string name;
  DType dtype;
  Shape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

Shape read_shape(const JsonObject& tensor, uint64_t element_bytes) {
  const std::vector<int64_t> dims = tensor.integers("shape");
  if (dims.size() > Shape::kMaxRank)
    tensor.fail_wanted("shape", fmt::format("at most {} dimensions", Shape::kMaxRank));
  Shape shape;
  // Zeros count as ones: no partial product, in whatever order someone multiplies, may overflow.
  int64_t bytes = static_cast<int64_t>(element_bytes);
  for (const int64_t dim : dims) {
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(dim, 1), &bytes))
      tensor.fail_wanted("shape", "fewer than 2^63 bytes");
    shape.append(dim);
  }
  return shape;
}

Entry read_entry(const std::string& name, const Json& value, uint64_t data_bytes,
                 const std::string& place) {
  const JsonObject tensor(value, fmt::format("{}: tensor {}", place, json_quoted(name)));
  Entry entry;
  entry.name = name;
  const std::string dtype = tensor.string("dtype");
  try {
    entry.dtype = dtype_from_name(dtype);
  } catch (const Error&) {
    tensor.fail_wanted("dtype", "a type this program knows");
  }
  const uint64_t element_bytes = size_of(entry.dtype);
  entry.shape = read_shape(tensor, element_bytes);
  const std::vector<int64_t> offsets =
      tensor.integers("data_offsets", 0, static_cast<int64_t>(data_bytes));
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    tensor.fail_wanted("data_offsets", "a begin and an end");
  entry.begin = static_cast<uint64_t>(offsets[0]);
  entry.end = static_cast<uint64_t>(offsets[1]);
  const uint64_t bytes = static_cast<uint64_t>(entry.shape.size()) * element_bytes;
  if (entry.end - entry.begin != bytes)
    tensor.fail_wanted("data_offsets",
                       fmt::format("the {} bytes of {} {}", bytes, dtype, entry.shape.to_string()));
  return entry;
}

// Tensors must tile the data: an overlap would let one name change another's meaning, a gap could
// smuggle bytes along; both are outside the format.
void check_tiling(const std::vector<Entry>& entries, uint64_t data_bytes,
                  const std::string& place) {
  uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < end)
      fail("{}: tensor {}: data_offsets: overlaps the tensor before it: wanted begin {}, got {}",
           place, json_quoted(entry.name), end, entry.begin);
    if (entry.begin > end)
      fail("{}: bytes {} to {} of the data belong to no tensor", place, end, entry.begin);
    end = entry.end;
  }
  if (end != data_bytes)
    fail("{}: bytes {} to {} of the data belong to no tensor", place, end, data_bytes);
}

std::vector<Entry> read_entries(const Json& header, uint64_t data_bytes, const std::string& place) {
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items())
    if (name != "__metadata__") entries.push_back(read_entry(name, value, data_bytes, place));
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_tiling(entries, data_bytes, place);
  return entries;
}

Metadata read_metadata(const Json& header, const std::string& place) {
  Metadata metadata;
  const auto found = header.find("__metadata__");
  if (found == header.end()) return metadata;
  const JsonObject object(*found, place + ": __metadata__");
  for (const auto& [key, value] : object.value().items()) metadata[key] = object.string(key);
  return metadata;
}

const Tensor* find_in(const TensorMap& tensors, std::string_view name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

Tensor get_from(const TensorMap& tensors, std::string_view name, const fs::path& place) {
  if (const Tensor* tensor = find_in(tensors, name)) return *tensor;
  fail("{}: wanted a tensor {}, got none of that name", place.string(), json_quoted(name));
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const fs::path& path) {
  SafetensorsFile file{MappedFile(path)};
  const std::string_view header_text = file.read_header();
  const Json header = parse_json(header_text, path.string() + ": header");
  if (!header.is_object()) fail("{}: header: wanted an object", path.string());
  file.read_tensors(header, file.map_.text().substr(kLengthBytes + header_text.size()));
  file.metadata_ = read_metadata(header, path.string());
  return file;
}

std::string_view SafetensorsFile::read_header() const {
  const std::string place = path().string();
  const std::string_view text = map_.text();
  if (text.size() < kLengthBytes)
    fail("{}: wanted a safetensors file, got {} bytes", place, text.size());
  uint64_t length = 0;
  std::memcpy(&length, text.data(), kLengthBytes);
  if (length > kMaxHeaderBytes)
    fail("{}: header length: wanted at most {}, got {}", place, kMaxHeaderBytes, length);
  if (length > text.size() - kLengthBytes)
    fail("{}: header length: wanted at most the {} bytes that follow, got {}", place,
         text.size() - kLengthBytes, length);
  return text.substr(kLengthBytes, length);
}

void SafetensorsFile::read_tensors(const Json& header, std::string_view data) {
  for (const Entry& entry : read_entries(header, data.size(), path().string())) {
    void* bytes = place_tensor(data.substr(entry.begin, entry.end - entry.begin), entry.dtype);
    tensors_.emplace(entry.name, Tensor(bytes, entry.dtype, entry.shape));
    names_.push_back(entry.name);
  }
}

void* SafetensorsFile::place_tensor(std::string_view bytes, DType dtype) {
  char* data = const_cast<char*>(bytes.data());
  if (reinterpret_cast<uintptr_t>(data) % size_of(dtype) == 0) return data;
  std::vector<uint64_t>& copy = copies_.emplace_back(bytes.size() / sizeof(uint64_t) + 1);
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  return copy.data();
}

const Tensor* SafetensorsFile::find(std::string_view name) const { return find_in(tensors_, name); }

Tensor SafetensorsFile::get(std::string_view name) const {
  return get_from(tensors_, name, path());
}

TensorFolder TensorFolder::open(const fs::path& folder_or_file) {
  TensorFolder folder;
  folder.path_ = folder_or_file;
  const fs::path single = folder_or_file / "model.safetensors";
  const fs::path index = folder_or_file / "model.safetensors.index.json";
  std::error_code ignored;
  if (!fs::exists(folder_or_file, ignored))
    fail("{}: wanted a model folder, got nothing of that name", folder_or_file.string());
  if (!fs::is_directory(folder_or_file, ignored)) {
    folder.files_.push_back(SafetensorsFile::open(folder_or_file));
  } else if (fs::exists(single, ignored)) {
    folder.files_.push_back(SafetensorsFile::open(single));
  } else if (fs::exists(index, ignored)) {
    folder.open_shards(index);
    return folder;
  } else {
    fail("{}: wanted model.safetensors or model.safetensors.index.json, got neither",
         folder_or_file.string());
  }
  for (const std::string& name : folder.files_[0].names())
    folder.tensors_.emplace(name, folder.files_[0].get(name));
  return folder;
}

void TensorFolder::open_shards(const fs::path& index) {
  const Json json = parse_json_file(index, kMaxIndexBytes);
  const JsonObject weight_map = JsonObject(json, index.string()).object("weight_map");
  std::map<std::string, std::vector<std::string>> names_of_shard;
  for (const auto& [name, value] : weight_map.value().items()) {
    const std::string shard = weight_map.string(name);
    if (!is_plain_name(shard)) weight_map.fail_wanted(name, "a file name without folders");
    names_of_shard[shard].push_back(name);
  }
  std::map<std::string, std::string> shard_of;
  for (const auto& [shard, names] : names_of_shard) {
    files_.push_back(SafetensorsFile::open(path_ / shard));
    for (const std::string& name : names) tensors_.emplace(name, files_.back().get(name));
    // Whatever the index says, a reader without one would have to guess.
    for (const std::string& name : files_.back().names())
      if (const auto [first, is_new] = shard_of.emplace(name, shard); !is_new)
        fail("{}: weight_map.{}: wanted it in one shard, got it in {} and in {}", index.string(),
             name, first->second, shard);
  }
}

std::vector<std::string> TensorFolder::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

void TensorFolder::release(const Tensor& part) const {
  for (const SafetensorsFile& file : files_)
    file.map().release(part.data, static_cast<size_t>(part.bytes()));
}

const Tensor* TensorFolder::find(std::string_view name) const { return find_in(tensors_, name); }

Tensor TensorFolder::get(std::string_view name) const { return get_from(tensors_, name, path_); }

}  // namespace zaya
