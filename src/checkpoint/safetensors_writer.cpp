#include <algorithm>

#include "checkpoint/safetensors.h"
#include "core/error.h"

namespace zaya {
namespace {

// Where the data starts in the file: views of the map are then aligned like arena tensors, as long
// as the tensors before them are whole multiples too.
constexpr uint64_t kDataAlignment = 64;
constexpr int64_t kRoundedPiece = 65536;

uint64_t bytes_of(const TensorDeclaration& tensor) {
  return static_cast<uint64_t>(tensor.shape.size()) * size_of(tensor.dtype);
}

Json entry_of(const TensorDeclaration& tensor, uint64_t begin) {
  Json shape = Json::array();
  for (int i = 0; i < tensor.shape.rank(); ++i) shape.push_back(tensor.shape[i]);
  return {{"dtype", std::string(name_of(tensor.dtype))},
          {"shape", std::move(shape)},
          {"data_offsets", {begin, begin + bytes_of(tensor)}}};
}

// Length, JSON, and the spaces that align what follows.
std::string header_of(const std::vector<TensorDeclaration>& tensors, const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t begin = 0;
  for (const TensorDeclaration& tensor : tensors) {
    ZAYA_REQUIRE(!tensor.name.empty() && !header.contains(tensor.name) &&
                 tensor.name != "__metadata__");
    header[tensor.name] = entry_of(tensor, begin);
    begin += bytes_of(tensor);
  }
  std::string text = json_text(header);
  uint64_t length = text.size();
  length += (kDataAlignment - (length + sizeof length) % kDataAlignment) % kDataAlignment;
  text.resize(length, ' ');
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const fs::path& path, std::vector<TensorDeclaration> tensors,
                                     const Metadata& metadata)
    : file_(path), tensors_(std::move(tensors)) {
  const std::string header = header_of(tensors_, metadata);
  file_.begin_part("header");
  file_.write(header.data(), header.size());
  file_bytes_ = header.size();
  for (const TensorDeclaration& tensor : tensors_) file_bytes_ += bytes_of(tensor);
}

void SafetensorsWriter::add(std::string_view name, const Tensor& tensor) {
  begin(name);
  ZAYA_REQUIRE(tensors_[next_ - 1].shape == tensor.shape);
  write(tensor);
}

void SafetensorsWriter::begin(std::string_view name) {
  ZAYA_REQUIRE(missing_ == 0 && next_ < tensors_.size() && tensors_[next_].name == name);
  missing_ = tensors_[next_++].shape.size();
  file_.begin_part(name);
}

void SafetensorsWriter::write(const Tensor& piece) {
  const TensorDeclaration& declared = tensors_[next_ - 1];
  ZAYA_REQUIRE(piece.size() <= missing_);
  missing_ -= piece.size();
  const bool round = declared.dtype == DType::bf16 && piece.dtype == DType::f32;
  ZAYA_REQUIRE(round || declared.dtype == piece.dtype);
  const int64_t rows = piece.contiguous() ? 1 : piece.rows();
  const int64_t row_size = rows == 0 ? 0 : piece.size() / rows;
  for (int64_t i = 0; i < rows; ++i) {
    const char* row = piece.address(i);
    if (round)
      write_rounded(reinterpret_cast<const float*>(row), row_size);
    else
      file_.write(row, static_cast<size_t>(row_size) * size_of(piece.dtype));
  }
}

void SafetensorsWriter::write_rounded(const float* data, int64_t count) {
  for (int64_t done = 0; done < count;) {
    const int64_t piece = std::min(count - done, kRoundedPiece);
    rounded_.resize(static_cast<size_t>(piece));
    std::transform(data + done, data + done + piece, rounded_.begin(),
                   [](float value) { return bf16(value); });
    file_.write(rounded_.data(), rounded_.size() * sizeof(bf16));
    done += piece;
  }
}

FileSums SafetensorsWriter::finish() {
  ZAYA_REQUIRE(next_ == tensors_.size() && missing_ == 0);
  return file_.finish();
}

}  // namespace zaya
