#pragma once
// A tensor is a non-owning view: where, what format, what shape. Memory belongs to arenas, to
// mapped files or to vectors. Copying a Tensor copies the view; `const Tensor&` says nothing about
// the data.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/dtype.h"
#include "core/error.h"

namespace zaya {

// Up to four dimensions, slowest first.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i]; }
  // Product of all dimensions (1 for rank 0).
  int64_t size() const;
  void append(int64_t dim);
  std::string to_string() const;  // "[3, 4]"
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  // Elements from one row to the next, a row being the last dimension. Equal to the row's length
  // unless the view is a slice of columns.
  int64_t row_stride = 0;

  Tensor() = default;
  Tensor(void* data, DType dtype, Shape shape)
      : data(data), dtype(dtype), shape(shape), row_stride(columns()) {}

  int64_t size() const { return shape.size(); }
  int64_t columns() const { return shape.rank() == 0 ? 1 : shape[shape.rank() - 1]; }
  // Product of all dimensions but the last.
  int64_t rows() const { return columns() == 0 ? 0 : size() / columns(); }
  int64_t bytes() const { return size() * static_cast<int64_t>(size_of(dtype)); }
  bool contiguous() const { return row_stride == columns() || rows() <= 1; }
  explicit operator bool() const { return data != nullptr; }

  // The data as T, after checking that the format is T's.
  template <class T>
  T* as() const {
    ZAYA_REQUIRE(dtype == DTypeOf<T>::value);
    return static_cast<T*>(data);
  }
  // The start of row i.
  template <class T>
  T* row(int64_t i) const {
    return as<T>() + i * row_stride;
  }

  // Where an element is, whatever the format.
  char* address(int64_t row, int64_t column = 0) const {
    return static_cast<char*>(data) +
           (row * row_stride + column) * static_cast<int64_t>(size_of(dtype));
  }

  // Views of part of the data. Rows and columns are those of the flattened [rows, columns] matrix.
  Tensor row_range(int64_t begin, int64_t end) const;
  Tensor column_range(int64_t begin, int64_t end) const;
  // The same contiguous data under another shape of the same size.
  Tensor reshaped(Shape new_shape) const;
};

}  // namespace zaya
