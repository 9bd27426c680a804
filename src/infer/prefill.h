#pragma once
// What generate and chat do to a decoder: make room, and feed a prompt that a person can stop.

#include <functional>
#include <optional>

#include "infer/decoder.h"

namespace zaya {

// Makes room for sequences of `length` tokens; for twice as many as there was room for, up to
// `limit`, so that growing costs little.
void make_room(Decoder& decoder, int64_t length, int64_t limit);

// Feeds ids, at least one, to a sequence that has room for them. Returns the logits [1, V] after
// the last one, valid until the decoder's next call; none when `stop` said true on the way: the
// decoder has then read a part of them, which its length tells.
std::optional<Tensor> prefill(Context& ctx, Decoder& decoder, int64_t sequence,
                              std::span<const int32_t> ids, const std::function<bool()>& stop);

}  // namespace zaya
