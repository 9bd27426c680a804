#include "data/hf_normalizer.h"

#include "core/error.h"
#include "data/hf_pattern.h"
#include "data/hf_unicode.h"

namespace zaya {
namespace {

std::string stripped(std::string_view text, bool left, bool right) {
  size_t begin = 0, end = text.size();
  for (size_t at = 0; left && begin < end && is_white_space(next_character(text, at));) begin = at;
  while (right && begin < end) {
    const size_t last = previous_character(text, end);
    size_t at = last;
    if (!is_white_space(next_character(text, at))) break;
    end = last;
  }
  return std::string(text.substr(begin, end - begin));
}

template <class Keep>
std::string filtered(std::string_view text, Keep keep) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (keep(next_character(text, at))) out += text.substr(begin, at - begin);
  }
  return out;
}

// The characters that NMT drops, and those that it takes for spaces.
bool nmt_drops(char32_t c) {
  return (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
         c == 0x9f;
}
bool nmt_space(char32_t c) {
  return c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 || (c >= 0x200b && c <= 0x200f) ||
         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
}

std::string nmt(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    if (!nmt_drops(c)) append_character(out, nmt_space(c) ? U' ' : c);
  }
  return out;
}

std::function<std::string(std::string_view)> make_step(const JsonObject& object,
                                                       const std::string& place) {
  const std::string type = object.string("type");
  if (type == "Replace") {
    return [pattern = HfPattern::of(object, place), content = object.string("content")](auto text) {
      return pattern.replaced(text, content);
    };
  }
  if (type == "Prepend") {
    return [prefix = object.string("prepend")](std::string_view text) {
      return text.empty() ? std::string() : prefix + std::string(text);
    };
  }
  if (type == "Strip") {
    return [left = object.boolean_or("strip_left", true),
            right = object.boolean_or("strip_right", true)](auto text) {
      return stripped(text, left, right);
    };
  }
  if (type == "NFC") return [](auto text) { return normalized(text, NormalForm::nfc); };
  if (type == "NFD") return [](auto text) { return normalized(text, NormalForm::nfd); };
  if (type == "NFKC") return [](auto text) { return normalized(text, NormalForm::nfkc); };
  if (type == "NFKD") return [](auto text) { return normalized(text, NormalForm::nfkd); };
  if (type == "Lowercase") return [](auto text) { return lowercase(text); };
  if (type == "StripAccents")
    return [](auto text) { return filtered(text, [](char32_t c) { return !is_mark(c); }); };
  if (type == "Nmt") return [](auto text) { return nmt(text); };
  if (type == "ByteLevel") return [](auto text) { return to_byte_characters(text); };
  object.fail_wanted("type",
                     "Sequence, Replace, Prepend, Strip, NFC, NFD, NFKC, NFKD, Lowercase, "
                     "StripAccents, Nmt or ByteLevel");
}

// How many bytes a step may make of one; of normal forms as Unicode's FAQ counts them in UTF-8.
double growth_of(const JsonObject& object, const std::string& place) {
  const std::string type = object.string("type");
  if (type == "Replace") return HfPattern::of(object, place).growth(object.string("content"));
  if (type == "Prepend") return 1 + static_cast<double>(object.string("prepend").size());
  if (type == "NFKC" || type == "NFKD") return 11;
  if (type == "NFC" || type == "NFD") return 3;
  return type == "Lowercase" || type == "ByteLevel" ? 2 : 1;
}

}  // namespace

void HfNormalizer::add(const Json& value, const std::string& place) {
  if (value.is_null()) return;
  const JsonObject object(value, place);
  if (object.string("type") != "Sequence") {
    steps_.push_back(make_step(object, place));
    growth_.add(growth_of(object, place), place);
    return;
  }
  size_t i = 0;
  for (const Json& part : object.array("normalizers"))
    add(part, fmt::format("{}.normalizers[{}]", place, i++));
}

std::string HfNormalizer::apply(std::string_view text) const {
  if (steps_.empty()) return std::string(text);
  std::string out = steps_.front()(text);
  for (size_t i = 1; i < steps_.size(); ++i) out = steps_[i](out);
  return out;
}

}  // namespace zaya
