#include "data/tokenizer.h"

#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "data/hf_tokenizer.h"

namespace zaya {

namespace {

constexpr char kHfName[] = "tokenizer.json";
constexpr char kHfConfigName[] = "tokenizer_config.json";
constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;
constexpr char kModelName[] = "tokenizer.model";
constexpr char kByteName[] = "tokenizer.byte";
constexpr char kByteFile[] =
    "zaya byte tokenizer 1\nIds 0..255 are bytes, 256 begins and 257 ends a document.\n";
constexpr uint64_t kMaxModelBytes = uint64_t{256} << 20;

class ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer() : file_(kByteFile) {
    for (int byte = 0; byte < 256; ++byte) bytes_.emplace_back(1, static_cast<char>(byte));
    bytes_.resize(258);
  }
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids(text.size());
    for (size_t i = 0; i < text.size(); ++i) ids[i] = static_cast<uint8_t>(text[i]);
    return ids;
  }
  int32_t vocab_size() const override { return 258; }
  std::optional<int32_t> bos() const override { return 256; }
  std::optional<int32_t> eos() const override { return 257; }
  std::string name() const override { return "byte"; }
  bool exact() const override { return true; }
  std::string file_name() const override { return kByteName; }
  const std::string& file_bytes() const override { return file_; }

 private:
  std::string file_;
};

std::unique_ptr<Tokenizer> open_byte_file(const fs::path& path) {
  if (read_file(path, 4096) != kByteFile) {
    fail("{}: wanted the note \"zaya byte tokenizer 1\", got something else", path.string());
  }
  return make_byte_tokenizer();
}

std::unique_ptr<Tokenizer> open_hf_file(const fs::path& path) {
  const fs::path config = path.parent_path() / kHfConfigName;
  HfConfigFile config_file;
  if (fs::exists(config)) config_file = {read_file(config, kMaxConfigBytes), config.string()};
  return make_hf_tokenizer(read_file(path, kMaxModelBytes), path.string(), std::move(config_file));
}

std::unique_ptr<Tokenizer> open_folder(const fs::path& folder) {
  for (const char* name : {kHfName, kModelName, kByteName}) {
    if (fs::exists(folder / name)) return open_tokenizer((folder / name).string());
  }
  fail("{}: wanted {}, {} or {}, got none of them", folder.string(), kHfName, kModelName,
       kByteName);
}

// The bytes that ids stand for, one after the other.
class BytesDecoder final : public IdDecoder {
 public:
  BytesDecoder(const Tokenizer& tokenizer, bool continues)
      : tokenizer_(tokenizer), drops_space_(!continues && tokenizer.adds_leading_space()) {}
  void push(int32_t id, std::string& text) override {
    std::string_view bytes = tokenizer_.bytes_of(id);
    if (bytes.empty()) return;
    if (std::exchange(drops_space_, false) && bytes.starts_with(' ')) bytes.remove_prefix(1);
    text += bytes;
  }
  void finish(std::string&) override { drops_space_ = false; }

 private:
  const Tokenizer& tokenizer_;
  bool drops_space_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& what) {
  if (what == "byte") return make_byte_tokenizer();
  const fs::path path(what);
  std::error_code ignored;  // an unreadable path is reported by read_file below
  if (fs::is_directory(path, ignored)) return open_folder(path);
  if (path.filename() == kByteName) return open_byte_file(path);
  if (path.extension() == ".json") return open_hf_file(path);
  return make_sentencepiece_tokenizer(read_file(path, kMaxModelBytes), what);
}

std::string_view Tokenizer::bytes_of(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= bytes_.size()) {
    fail("token id: wanted 0 to {}, got {}", bytes_.size() - 1, id);
  }
  return bytes_[static_cast<size_t>(id)];
}

std::string Tokenizer::decode(std::span<const int32_t> ids, SpecialTokens special) const {
  std::string text;
  const auto out = decoder(false, special);
  for (const int32_t id : ids) out->push(id, text);
  out->finish(text);
  return text;
}

std::unique_ptr<IdDecoder> Tokenizer::decoder(bool continues, SpecialTokens) const {
  return std::make_unique<BytesDecoder>(*this, continues);
}

std::vector<int32_t> Tokenizer::encode_document(std::string_view text) const {
  std::vector<int32_t> ids = encode(text);
  if (bos()) ids.insert(ids.begin(), *bos());
  return ids;
}

std::optional<int32_t> Tokenizer::token_id(std::string_view content) const {
  for (int32_t id = 0; id < vocab_size() && !content.empty(); ++id) {
    if (bytes_of(id) == content) return id;
  }
  return std::nullopt;
}

const std::string& Tokenizer::config_bytes() const {
  static const std::string none;
  return none;
}

std::string Tokenizer::description() const {
  std::string text = fmt::format("{}, {} tokens", name(), vocab_size());
  if (bos()) text += fmt::format(", bos {}", *bos());
  if (eos()) text += fmt::format(", eos {}", *eos());
  return text + (exact() ? ", every byte survives" : ", some text changes on the way");
}

void save_tokenizer(const Tokenizer& tokenizer, const fs::path& folder) {
  write_file_durably(folder / tokenizer.file_name(), tokenizer.file_bytes());
  if (!tokenizer.config_bytes().empty())
    write_file_durably(folder / kHfConfigName, tokenizer.config_bytes());
}

}  // namespace zaya
