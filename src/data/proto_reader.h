#pragma once
// Protocol-buffer fields out of untrusted bytes: enough of the wire format to read messages whose
// fields are numbers, strings and messages.

#include <cstdint>
#include <string>
#include <string_view>

namespace zaya {

class ProtoReader {
 public:
  // Both views must outlive the reader. `place` begins every Error.
  ProtoReader(std::string_view bytes, std::string_view place) : rest_(bytes), place_(place) {}

  // Moves to the next field; false at the end of the message. Fields of no interest are skipped.
  bool next();
  uint32_t field() const { return field_; }
  // The value of the current field. Error when the field was stored as something else.
  uint64_t number() const;
  float real() const;
  std::string_view bytes() const;

 private:
  uint64_t varint();
  std::string_view take(uint64_t count);
  void require(uint32_t wire_type) const;

  std::string_view rest_;
  std::string_view place_;
  uint32_t field_ = 0;
  uint32_t wire_type_ = 0;
  uint64_t number_ = 0;
  std::string_view bytes_;
};

}  // namespace zaya
