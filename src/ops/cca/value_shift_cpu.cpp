#include <cstring>

#include "backend/cpu/threads.h"
#include "ops/cca/lead_rows.h"
#include "ops/cca/value_shift.h"

namespace zaya {
namespace {

constexpr int64_t kRowsPerItem = 64;

void require_same_rows(const Tensor& a, const Tensor& b, Ragged sequences) {
  ZAYA_REQUIRE(a.dtype == b.dtype && (a.dtype == DType::f32 || a.dtype == DType::bf16));
  ZAYA_REQUIRE(a.columns() == b.columns());
  ZAYA_REQUIRE(a.rows() == sequences.tokens() && b.rows() == sequences.tokens());
}

// f(s, t) for every token t of every sequence s.
template <class F>
void for_each_token(Ragged sequences, F&& f) {
  const LeadRows rows{sequences, 0};
  parallel_ranges(sequences.tokens(), kRowsPerItem, [&](int64_t begin, int64_t end) {
    rows.for_each_run(begin, end, [&](int64_t s, int64_t r0, int64_t r1) {
      for (int64_t r = r0; r < r1; ++r) f(s, rows.begin(s) + r);
    });
  });
}

}  // namespace

void value_shift_forward(Context&, const Tensor& out, const Tensor& in, const Tensor& previous,
                         Ragged sequences) {
  require_same_rows(out, in, sequences);
  ZAYA_REQUIRE(!previous || (previous.dtype == in.dtype && previous.contiguous() &&
                             previous.size() == sequences.count() * in.columns()));
  const size_t bytes = in.columns() * size_of(in.dtype);
  for_each_token(sequences, [&](int64_t s, int64_t t) {
    if (t > sequences.begin(s)) {
      std::memcpy(out.address(t), in.address(t - 1), bytes);
    } else if (previous) {
      std::memcpy(out.address(t), static_cast<char*>(previous.data) + s * bytes, bytes);
    } else {
      std::memset(out.address(t), 0, bytes);
    }
  });
}

void value_shift_backward(Context&, const Tensor& din, const Tensor& dout, Ragged sequences) {
  require_same_rows(din, dout, sequences);
  const size_t bytes = din.columns() * size_of(din.dtype);
  for_each_token(sequences, [&](int64_t s, int64_t t) {
    if (t + 1 < sequences.end(s)) {
      std::memcpy(din.address(t), dout.address(t + 1), bytes);
    } else {
      std::memset(din.address(t), 0, bytes);
    }
  });
}

}  // namespace zaya
