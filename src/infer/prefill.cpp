#include "infer/prefill.h"

#include <algorithm>

namespace zaya {

void make_room(Decoder& decoder, int64_t length, int64_t limit) {
  if (length <= decoder.capacity()) return;
  decoder.reserve(std::max(length, std::min(2 * decoder.capacity(), limit)));
}

std::optional<Tensor> prefill(Context& ctx, Decoder& decoder, int64_t sequence,
                              std::span<const int32_t> ids, const std::function<bool()>& stop) {
  constexpr size_t kPart = 512;
  std::optional<Tensor> logits;
  while (!ids.empty()) {
    if (stop()) return {};
    const auto part = ids.first(std::min(ids.size(), kPart));
    ids = ids.subspan(part.size());
    const Decoder::Piece piece{sequence, part};
    logits = decoder.feed(ctx, {&piece, 1});
  }
  return logits;
}

}  // namespace zaya
