// HF's tokenizer.json. JSON holds no zero bytes: behind the first one comes a text to encode,
// behind the second the tokenizer_config.json that lies beside the file.

#include <algorithm>
#include <set>

#include "core/json.h"
#include "data/hf_tokenizer.h"
#include "fuzz/tokenizer_checks.h"

namespace zaya::fuzz {
namespace {

std::string_view take_part(std::string_view& rest) {
  const std::string_view part = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

// What the accepted file says about its added tokens.
struct Added {
  explicit Added(const Json& file) {
    std::string unknown;
    if (file.contains("model") && file["model"].is_object())
      unknown = JsonObject(file["model"], "model").string_or("unk_token", "");
    if (!file.contains("added_tokens")) return;
    for (const Json& token : file["added_tokens"]) {
      const std::string content = token["content"];
      contents += content + ' ';
      const bool special = JsonObject(token, "token").boolean_or("special", false);
      if (special && content != unknown) special_ids.insert(token["id"].get<int32_t>());
    }
  }
  std::string contents;           // all of them, as a text
  std::set<int32_t> special_ids;  // but that of the unknown token
};

void check_literal(const Tokenizer& tokenizer, const Added& added, std::string_view text) {
  const std::vector<int32_t> ids = tokenizer.encode_literal(text);
  check_ids(tokenizer, ids);
  for (const int32_t id : ids) FUZZ_CHECK(!added.special_ids.contains(id));
}

void check_document(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<int32_t> ids = tokenizer.encode_document(text);
  check_ids(tokenizer, ids);
  const std::vector<int32_t> inner = tokenizer.encode(text);
  FUZZ_CHECK(std::search(ids.begin(), ids.end(), inner.begin(), inner.end()) != ids.end() ||
             inner.empty());
}

// Ids as a model may give them: any, in any order.
void check_any_ids(const Tokenizer& tokenizer, std::string_view bytes) {
  std::vector<int32_t> ids;
  for (const char byte : bytes)
    ids.push_back(static_cast<unsigned char>(byte) * 257 % tokenizer.vocab_size());
  check_ids(tokenizer, ids);
  FUZZ_CHECK(is_utf8(tokenizer.decode(ids)));
  FUZZ_CHECK(is_utf8(tokenizer.decode(ids, SpecialTokens::shown)));
}

void check_file(std::string_view input) {
  const std::string file(take_part(input));
  const std::string_view text = take_part(input);
  const auto tokenizer =
      make_hf_tokenizer(file, "t.json", {std::string(input), "tokenizer_config.json"});
  check_tokenizer(*tokenizer, text);
  const Added added(Json::parse(file));
  check_text(*tokenizer, added.contents);
  check_literal(*tokenizer, added, added.contents);
  check_literal(*tokenizer, added, text);
  check_document(*tokenizer, text);
  check_any_ids(*tokenizer, text);
  check_any_ids(*tokenizer, kSample);
}

}  // namespace
}  // namespace zaya::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  zaya::fuzz::accepts([&] { zaya::fuzz::check_file(zaya::fuzz::as_text(data, size)); });
  return 0;
}
