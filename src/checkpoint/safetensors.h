#pragma once
// Safetensors files (https://github.com/huggingface/safetensors, format section): 8 bytes of header
// length, a JSON header, then the tensors' bytes. Files come from strangers: everything is checked
// at open(), and an opened file can be read without further care.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checksums.h"
#include "core/file.h"
#include "core/tensor.h"

namespace zaya {

using Metadata = std::map<std::string, std::string>;
using TensorMap = std::map<std::string, Tensor, std::less<>>;

// A file mapped read-only. Its tensors are views of the map: they live as long as this object
// (moving it keeps them valid), and writing to them is a segmentation fault. Tensors whose bytes
// are not aligned to their type are copied to memory at open(); current writers align them.
class SafetensorsFile {
 public:
  // Error, naming the file and the tensor, for anything that is not a well-formed file. Stricter
  // than the format in one point: tensors have at most Shape::kMaxRank dimensions.
  static SafetensorsFile open(const fs::path& path);

  const fs::path& path() const { return map_.path(); }
  uint64_t file_bytes() const { return map_.size(); }
  // In the order of their bytes.
  const std::vector<std::string>& names() const { return names_; }
  // Tensors by name; nullptr, or an Error from get(), when the file has none of that name.
  const Tensor* find(std::string_view name) const;
  Tensor get(std::string_view name) const;
  const Metadata& metadata() const { return metadata_; }
  const MappedFile& map() const { return map_; }

 private:
  explicit SafetensorsFile(MappedFile map) : map_(std::move(map)) {}
  std::string_view read_header() const;
  void read_tensors(const Json& header, std::string_view data);
  void* place_tensor(std::string_view bytes, DType dtype);

  MappedFile map_;
  std::vector<std::string> names_;
  TensorMap tensors_;
  Metadata metadata_;
  std::vector<std::vector<uint64_t>> copies_;  // of unaligned tensors
};

// The tensors of a model folder: model.safetensors, or the shards that model.safetensors.index.json
// lists. Also opens a single .safetensors file.
class TensorFolder {
 public:
  static TensorFolder open(const fs::path& folder_or_file);

  const fs::path& path() const { return path_; }
  std::vector<std::string> names() const;  // sorted
  const Tensor* find(std::string_view name) const;
  Tensor get(std::string_view name) const;
  const std::vector<SafetensorsFile>& files() const { return files_; }
  // Gives back the memory that reading (a part of) a tensor took; it can be read again.
  void release(const Tensor& part) const;

 private:
  void open_shards(const fs::path& index);

  fs::path path_;
  std::vector<SafetensorsFile> files_;
  TensorMap tensors_;
};

// A tensor that will be written: declared first, because the header precedes the data.
struct TensorDeclaration {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

// Writes a file tensor by tensor, nothing staged in memory. The file appears when finish() returns;
// destroyed before that, nothing remains.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const fs::path& path, std::vector<TensorDeclaration> tensors,
                    const Metadata& metadata = {});
  // The next tensor, in the declared order, of the declared name and shape. An f32 tensor is
  // rounded when bf16 was declared; otherwise the types must agree. Rows may be strided.
  void add(std::string_view name, const Tensor& tensor);
  // The same in pieces that lie end to end, each of whole rows.
  void begin(std::string_view name);
  void write(const Tensor& piece);
  // Syncs and renames. All declared tensors must have been added.
  FileSums finish();
  // Size of the whole file, known from the start.
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  void write_rounded(const float* data, int64_t count);

  ChecksummedFile file_;
  std::vector<TensorDeclaration> tensors_;
  size_t next_ = 0;
  int64_t missing_ = 0;  // elements of the tensor begun last
  uint64_t file_bytes_ = 0;
  std::vector<bf16> rounded_;
};

}  // namespace zaya
