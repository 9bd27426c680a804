#pragma once
// A batch is a flat list of T tokens; sequences are offsets into it. There is no padding.

#include <cstdint>
#include <span>

namespace zaya {

// Sequence s holds tokens [cu_seqlens[s], cu_seqlens[s + 1]). cu_seqlens[0] = 0.
struct Ragged {
  std::span<const int32_t> cu_seqlens;  // [S + 1]

  int64_t count() const { return static_cast<int64_t>(cu_seqlens.size()) - 1; }  // S
  int64_t tokens() const { return cu_seqlens.back(); }                           // T
  int64_t begin(int64_t s) const { return cu_seqlens[s]; }
  int64_t end(int64_t s) const { return cu_seqlens[s + 1]; }
  int64_t length(int64_t s) const { return end(s) - begin(s); }
};

}  // namespace zaya
