#include "data/stream_decoder.h"

#include "data/utf8.h"

namespace zaya {

std::string StreamDecoder::push(int32_t id) {
  decoder_->push(id, waiting_);
  return whole_characters();
}

std::string StreamDecoder::finish() {
  decoder_->finish(waiting_);
  std::string text = whole_characters();
  if (!waiting_.empty()) text += kReplacementCharacter;
  waiting_.clear();
  return text;
}

std::string StreamDecoder::whole_characters() {
  std::string text;
  std::string_view rest = waiting_;
  while (!rest.empty()) {
    const Utf8Step step = utf8_step(rest);
    if (step.kind == Utf8Step::incomplete) break;
    text += step.kind == Utf8Step::character ? rest.substr(0, step.bytes) : kReplacementCharacter;
    rest.remove_prefix(step.bytes);
  }
  waiting_.erase(0, waiting_.size() - rest.size());
  return text;
}

}  // namespace zaya
