#include "data/proto_reader.h"

#include <cstring>

#include "core/error.h"

namespace zaya {

namespace {
constexpr uint32_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;
}

bool ProtoReader::next() {
  if (rest_.empty()) return false;
  const uint64_t tag = varint();
  field_ = static_cast<uint32_t>(tag >> 3);
  wire_type_ = static_cast<uint32_t>(tag & 7);
  if (tag >> 32 != 0 || field_ == 0) fail("{}: wanted a field tag, got {}", place_, tag);
  switch (wire_type_) {
    case kVarint:
      number_ = varint();
      break;
    case kFixed64:
      bytes_ = take(8);
      break;
    case kBytes:
      bytes_ = take(varint());
      break;
    case kFixed32:
      bytes_ = take(4);
      break;
    default:
      fail("{}: field {}: unknown wire type {}", place_, field_, wire_type_);
  }
  return true;
}

uint64_t ProtoReader::number() const {
  require(kVarint);
  return number_;
}

float ProtoReader::real() const {
  require(kFixed32);
  float value;
  std::memcpy(&value, bytes_.data(), sizeof value);
  return value;
}

std::string_view ProtoReader::bytes() const {
  require(kBytes);
  return bytes_;
}

uint64_t ProtoReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(take(1)[0]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail("{}: a number of more than 64 bits", place_);
}

std::string_view ProtoReader::take(uint64_t count) {
  if (count > rest_.size()) {
    fail("{}: truncated: wanted {} more bytes, got {}", place_, count, rest_.size());
  }
  const std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return taken;
}

void ProtoReader::require(uint32_t wire_type) const {
  if (wire_type_ != wire_type) {
    fail("{}: field {}: wanted wire type {}, got {}", place_, field_, wire_type, wire_type_);
  }
}

}  // namespace zaya
