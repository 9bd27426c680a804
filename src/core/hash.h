#pragma once
// XXH3, 64 bits: checksums of files and digests of consumed data. Not for secrets.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace zaya {

uint64_t xxh3(const void* data, size_t bytes);
inline uint64_t xxh3(std::string_view text) { return xxh3(text.data(), text.size()); }

// The same sum over data that comes in pieces.
class Xxh3 {
 public:
  Xxh3();
  void update(const void* data, size_t bytes);
  uint64_t digest() const;
  void reset();

 private:
  struct Free {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, Free> state_;
};

// 16 hexadecimal digits, lower case, and back. Error for anything else.
std::string to_hex(uint64_t value);
uint64_t from_hex(std::string_view text);

}  // namespace zaya
