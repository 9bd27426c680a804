#include "infer/writer.h"

#include <algorithm>

#include "core/error.h"

namespace zaya {

std::string_view name_of(Stopped stopped) {
  switch (stopped) {
    case Stopped::not_yet:
      return "not yet";
    case Stopped::eos:
      return "eos";
    case Stopped::stop_string:
      return "stop string";
    case Stopped::length:
    case Stopped::context:
      return "length";
    case Stopped::interrupted:
      return "interrupted";
  }
  return {};
}

Writer::Writer(const Tokenizer& tokenizer, TokenSampler& sampler, const WriteOptions& options,
               int64_t room)
    : sampler_(sampler),
      decoder_(tokenizer),
      stops_(options.stops),
      ends_(options.ends),
      max_tokens_(options.max_tokens),
      room_(room) {
  ZAYA_REQUIRE(max_tokens_ >= 1 && room_ >= 1);
}

std::string Writer::take(const Tensor& logits) {
  ZAYA_REQUIRE(stopped_ == Stopped::not_yet);
  const int32_t id = sampler_.next(logits);
  ++new_tokens_;
  if (std::find(ends_.begin(), ends_.end(), id) != ends_.end()) return stop(Stopped::eos);
  ids_.push_back(id);
  std::string text = stops_.push(decoder_.push(id));
  if (stops_.found()) {
    stopped_ = Stopped::stop_string;
  } else if (new_tokens_ == max_tokens_) {
    text += stop(Stopped::length);
  } else if (new_tokens_ == room_) {
    text += stop(Stopped::context);
  }
  return text;
}

std::string Writer::stop(Stopped reason) {
  ZAYA_REQUIRE(stopped_ == Stopped::not_yet);
  stopped_ = reason;
  const std::string text = stops_.push(decoder_.finish());
  return text + stops_.finish();
}

}  // namespace zaya
