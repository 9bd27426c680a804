// A .safetensors file: opened, and what it promises read.

#include <cstring>

#include "checkpoint/safetensors.h"
#include "fuzz/file_calls.h"
#include "support/temp_folder.h"

namespace zaya::fuzz {
namespace {

constexpr size_t kLengthBytes = sizeof(uint64_t);

// Whether an empty tensor or not, its first and last byte can be read. Returns its size.
uint64_t read_ends(const Tensor& tensor) {
  const uint64_t bytes = static_cast<uint64_t>(tensor.bytes());
  if (bytes == 0) return 0;
  const volatile char* data = static_cast<const char*>(tensor.data);
  static_cast<void>(data[0]);
  static_cast<void>(data[bytes - 1]);
  return bytes;
}

// The names of the header's outer object, as often as they come.
size_t count_names(std::string_view header) {
  size_t names = 0;
  const Json::parser_callback_t count = [&](int depth, Json::parse_event_t event, Json&) {
    names += event == Json::parse_event_t::key && depth == 1;
    return true;
  };
  const bool has_metadata = Json::parse(header, count).contains("__metadata__");
  return names - has_metadata;
}

void check_file(const SafetensorsFile& file, std::string_view input) {
  uint64_t length = 0;
  std::memcpy(&length, input.data(), kLengthBytes);
  uint64_t bytes = 0;
  for (const std::string& name : file.names()) {
    const Tensor tensor = file.get(name);
    FUZZ_CHECK(reinterpret_cast<uintptr_t>(tensor.data) % size_of(tensor.dtype) == 0);
    bytes += read_ends(tensor);
  }
  FUZZ_CHECK(kLengthBytes + length + bytes == input.size());
  FUZZ_CHECK(count_names(input.substr(kLengthBytes, length)) == file.names().size());
  for (const auto& [key, value] : file.metadata()) FUZZ_CHECK(is_utf8(key) && is_utf8(value));
}

}  // namespace
}  // namespace zaya::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace zaya;
  using namespace zaya::fuzz;
  static const TempFolder folder;
  static const fs::path path = folder.path() / "a.safetensors";
  static InputFileOnDisk file(path);
  file.set(as_text(data, size));
  accepts([&] { check_file(SafetensorsFile::open(path), as_text(data, size)); });
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Mostly changes the header and makes the length fit again: else few headers would be looked at.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  constexpr size_t kLengthBytes = sizeof(uint64_t);
  uint64_t length = 0;
  if (size >= kLengthBytes) std::memcpy(&length, data, kLengthBytes);
  if (seed % 8 == 0 || length == 0 || length > size - kLengthBytes)
    return LLVMFuzzerMutate(data, size, max_size);
  const std::string rest(data + kLengthBytes + length, data + size);
  uint8_t* header = data + kLengthBytes;
  length = LLVMFuzzerMutate(header, length, max_size - kLengthBytes - rest.size());
  std::memcpy(data, &length, kLengthBytes);
  std::memcpy(header + length, rest.data(), rest.size());
  return kLengthBytes + length + rest.size();
}
