#include "data/tokenizer.h"

#include <algorithm>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"

namespace zaya {

namespace {

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

std::unique_ptr<Tokenizer> open_folder(const fs::path& folder) {
  if (fs::exists(folder / kModelName)) return open_tokenizer((folder / kModelName).string());
  if (fs::exists(folder / kByteName)) return open_byte_file(folder / kByteName);
  const bool has_json = fs::exists(folder / "tokenizer.json");
  fail("{}: wanted {} or {}, got neither{}", folder.string(), kModelName, kByteName,
       has_json ? " (tokenizer.json is not supported yet)" : "");
}

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& what) {
  if (what == "byte") return make_byte_tokenizer();
  const fs::path path(what);
  std::error_code ignored;  // an unreadable path is reported by read_file below
  if (fs::is_directory(path, ignored)) return open_folder(path);
  if (path.filename() == kByteName) return open_byte_file(path);
  if (path.extension() == ".json") {
    fail(
        "{}: tokenizer.json is not supported yet; wanted a SentencePiece .model file, a folder "
        "with tokenizer.model, or the word byte",
        what);
  }
  return make_sentencepiece_tokenizer(read_file(path, kMaxModelBytes), what);
}

std::vector<int32_t> Tokenizer::encode_document(std::string_view text) const {
  std::vector<int32_t> ids = encode(text);
  if (bos()) ids.insert(ids.begin(), *bos());
  return ids;
}

std::optional<int32_t> Tokenizer::token_id(std::string_view content) const {
  const auto found = std::find(bytes_.begin(), bytes_.end(), content);
  if (content.empty() || found == bytes_.end()) return {};
  return static_cast<int32_t>(found - bytes_.begin());
}

std::string_view Tokenizer::bytes_of(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= bytes_.size()) {
    fail("token id: wanted 0 to {}, got {}", bytes_.size() - 1, id);
  }
  return bytes_[static_cast<size_t>(id)];
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) text += bytes_of(id);
  if (adds_leading_space_ && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::string Tokenizer::description() const {
  std::string text = fmt::format("{}, {} tokens", name(), vocab_size());
  if (bos()) text += fmt::format(", bos {}", *bos());
  if (eos()) text += fmt::format(", eos {}", *eos());
  return text + (exact() ? ", every byte survives" : ", some text changes on the way");
}

void save_tokenizer(const Tokenizer& tokenizer, const fs::path& folder) {
  write_file_durably(folder / tokenizer.file_name(), tokenizer.file_bytes());
}

}  // namespace zaya
