#include "data/stream_decoder.h"

#include "data/utf8.h"

namespace zaya {

std::string StreamDecoder::push(int32_t id) {
  std::string_view bytes = tokenizer_.bytes_of(id);
  if (at_start_ && !bytes.empty()) {
    if (tokenizer_.adds_leading_space() && bytes.starts_with(' ')) bytes.remove_prefix(1);
    at_start_ = false;
  }
  waiting_ += bytes;
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

std::string StreamDecoder::finish() {
  std::string text(waiting_.empty() ? "" : kReplacementCharacter);
  waiting_.clear();
  at_start_ = false;
  return text;
}

}  // namespace zaya
