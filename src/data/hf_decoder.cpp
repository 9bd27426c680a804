#include "data/hf_decoder.h"

#include "core/error.h"
#include "data/hf_decoder_stages.h"
#include "data/hf_pattern.h"
#include "data/hf_unicode.h"

namespace zaya {
namespace {

// What a stage may have to keep back.
constexpr size_t kMaxPattern = 256;
constexpr int64_t kMaxStrip = 4096;

std::string bounded(const JsonObject& object, const char* key) {
  std::string text = object.string(key);
  if (text.empty() || text.size() > kMaxPattern)
    object.fail_wanted(key, fmt::format("1 to {} bytes", kMaxPattern));
  return text;
}

std::string one_character(const JsonObject& object, const char* key) {
  std::string text = bounded(object, key);
  size_t at = 0;
  next_character(text, at);
  if (at != text.size()) object.fail_wanted(key, "one character");
  return text;
}

}  // namespace

HfDecoding::HfDecoding(std::vector<std::unique_ptr<HfDecoderStage>> stages)
    : stages_(std::move(stages)) {}
HfDecoding::HfDecoding(HfDecoding&&) noexcept = default;
HfDecoding::~HfDecoding() = default;

void HfDecoding::pass(size_t stage, std::string_view part, std::string& text) {
  if (stage == stages_.size()) {
    text += part;
    return;
  }
  stages_[stage]->push(part, [&](std::string_view out) { pass(stage + 1, out, text); });
}

void HfDecoding::push(std::string_view content, std::string& text) { pass(0, content, text); }

void HfDecoding::finish(std::string& text) {
  for (size_t i = 0; i < stages_.size(); ++i)
    stages_[i]->finish([&](std::string_view out) { pass(i + 1, out, text); });
}

HfDecoder::HfDecoder(const Json& value, const std::string& place) {
  if (value.is_null()) {
    stages_.push_back({.kind = Kind::join});
  } else {
    add(value, place);
  }
}

void HfDecoder::add(const Json& value, const std::string& place) {
  const JsonObject object(value, place);
  if (object.string("type") == "Sequence") {
    size_t i = 0;
    for (const Json& part : object.array("decoders"))
      add(part, fmt::format("{}.decoders[{}]", place, i++));
    return;
  }
  Stage stage = read(object, place);
  stage.fused = fused_;
  const bool works_on_text =
      stage.kind == Kind::replace || stage.kind == Kind::fuse || stage.kind == Kind::strip;
  if (fused_ && !works_on_text)
    object.fail_wanted("type", "Replace, Fuse or Strip behind Fuse and ByteLevel");
  // Nothing else makes a text much longer than its tokens.
  const bool replaces = stage.kind == Kind::replace;
  growth_.add(replaces ? HfPattern(stage.pattern).growth(stage.content) : 1, place);
  fused_ = fused_ || stage.kind == Kind::fuse || stage.kind == Kind::byte_level;
  stages_.push_back(std::move(stage));
}

HfDecoder::Stage HfDecoder::read(const JsonObject& object, const std::string&) const {
  const std::string type = object.string("type");
  if (type == "Replace") {
    const JsonObject pattern = object.object("pattern");
    if (!pattern.has("String")) object.fail_wanted("pattern", "a String");
    return {.kind = Kind::replace,
            .pattern = bounded(pattern, "String"),
            .content = object.string("content")};
  }
  if (type == "ByteFallback") return {.kind = Kind::byte_fallback};
  if (type == "Fuse") return {.kind = Kind::fuse};
  if (type == "ByteLevel") return {.kind = Kind::byte_level};
  if (type == "Strip")
    return {.kind = Kind::strip,
            .pattern = one_character(object, "content"),
            .start = object.integer("start", 0, kMaxStrip),
            .stop = object.integer("stop", 0, kMaxStrip)};
  if (type == "Metaspace") {
    const std::string fallback = object.boolean_or("add_prefix_space", true) ? "always" : "never";
    const std::string scheme = object.string_or("prepend_scheme", fallback);
    return {.kind = Kind::metaspace,
            .pattern = one_character(object, "replacement"),
            .start = scheme == "never" ? 0 : 1};
  }
  if (type == "BPEDecoder") return {.kind = Kind::suffix, .pattern = bounded(object, "suffix")};
  object.fail_wanted(
      "type", "Sequence, Replace, ByteFallback, Fuse, Strip, ByteLevel, Metaspace or BPEDecoder");
}

HfDecoding HfDecoder::start(bool continues) const { return build(continues, false); }

HfDecoding HfDecoder::start_bytes() const { return build(true, true); }

HfDecoding HfDecoder::build(bool continues, bool bytes) const {
  std::vector<std::unique_ptr<HfDecoderStage>> out;
  for (const Stage& stage : stages_) {
    switch (stage.kind) {
      case Kind::replace:
        out.push_back(replace_stage(stage.pattern, stage.content, stage.fused));
        break;
      case Kind::byte_fallback:
        out.push_back(bytes ? raw_byte_fallback_stage() : byte_fallback_stage());
        break;
      case Kind::byte_level:
        out.push_back(bytes ? raw_byte_level_stage() : byte_level_stage());
        break;
      case Kind::strip:
        if (!stage.fused) {
          out.push_back(strip_tokens_stage(stage.pattern, stage.start, stage.stop));
        } else if (!bytes) {
          out.push_back(strip_text_stage(stage.pattern, continues ? 0 : stage.start, stage.stop));
        }
        break;
      case Kind::metaspace:
        out.push_back(metaspace_stage(stage.pattern, stage.start == 1 && !continues));
        break;
      case Kind::suffix:
        out.push_back(suffix_stage(stage.pattern));
        break;
      case Kind::join:
        if (!bytes) out.push_back(join_stage(continues));
        break;
      case Kind::fuse:
        break;
    }
  }
  return HfDecoding(std::move(out));
}

}  // namespace zaya
