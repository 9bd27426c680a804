#include <cstring>

#include "ops/cca/history.h"

namespace zaya {

void history_append(Context&, const Tensor& history, const Tensor& in, Ragged sequences) {
  ZAYA_REQUIRE(history.shape.rank() == 3 && history.shape[0] == sequences.count() &&
               history.dtype == in.dtype && history.columns() == in.columns() &&
               in.rows() == sequences.tokens());
  const int64_t P = history.shape[1];
  const size_t row_bytes = static_cast<size_t>(in.columns()) * size_of(in.dtype);
  for (int64_t s = 0; s < sequences.count(); ++s) {
    const int64_t length = sequences.length(s);
    for (int64_t p = 0; p < P; ++p) {       // ascending: a row is read before it is overwritten
      const int64_t from = p + length - P;  // row of `in`, or before it
      const char* source =
          from >= 0 ? in.address(sequences.begin(s) + from) : history.address(s * P + p + length);
      std::memmove(history.address(s * P + p), source, row_bytes);
    }
  }
}

}  // namespace zaya
