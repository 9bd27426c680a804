#pragma once
// What the data tests share: a folder that goes away, and the messages of Errors.

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "data/token_store.h"

namespace zaya::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "zaya-data-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail_errno("mkdtemp", name);
    path_ = name;
  }
  ~TemporaryFolder() { remove_folder(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  // Writes a file and returns its path.
  std::string file(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return *this / name;
  }

 private:
  fs::path path_;
};

// The message of the Error that f throws; a test failure when it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "wanted an Error";
  return "";
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Writes the documents to a store and opens it.
inline std::shared_ptr<const TokenStore> make_store(
    const TemporaryFolder& folder, const std::string& name,
    const std::vector<std::vector<int32_t>>& documents, int32_t vocab_size = 1000) {
  TokenStoreWriter writer(folder / name, vocab_size);
  for (const auto& document : documents) writer.add_document(document);
  writer.finish();
  return std::make_shared<TokenStore>(folder / name);
}

}  // namespace zaya::test
