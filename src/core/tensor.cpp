#include "core/tensor.h"

#include <fmt/ranges.h>

namespace zaya {

Shape::Shape(std::initializer_list<int64_t> dims) {
  for (int64_t dim : dims) append(dim);
}

int64_t Shape::size() const {
  int64_t product = 1;
  for (int i = 0; i < rank_; ++i) product *= dims_[i];
  return product;
}

void Shape::append(int64_t dim) {
  ZAYA_REQUIRE(rank_ < kMaxRank && dim >= 0);
  dims_[rank_++] = dim;
}

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(dims_.begin(), dims_.begin() + rank_, ", "));
}

Tensor Tensor::row_range(int64_t begin, int64_t end) const {
  ZAYA_REQUIRE(0 <= begin && begin <= end && end <= rows());
  Tensor view = *this;
  if (data) view.data = static_cast<char*>(data) + begin * row_stride * size_of(dtype);
  view.shape = {end - begin, columns()};
  return view;
}

Tensor Tensor::column_range(int64_t begin, int64_t end) const {
  ZAYA_REQUIRE(0 <= begin && begin <= end && end <= columns());
  Tensor view = *this;
  if (data) view.data = static_cast<char*>(data) + begin * size_of(dtype);
  view.shape = {rows(), end - begin};
  return view;
}

Tensor Tensor::reshaped(Shape new_shape) const {
  ZAYA_REQUIRE(contiguous() && new_shape.size() == size());
  return Tensor(data, dtype, new_shape);
}

}  // namespace zaya
