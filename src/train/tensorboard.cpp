#include "train/tensorboard.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <filesystem>

#include "core/error.h"

namespace zaya {
namespace {

std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}

template <class T>
void append_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
}

// Protocol buffers' wire format: a tag is field number * 8 + wire type.
enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}
void append_tag(std::string& out, uint32_t field, Wire wire) {
  append_varint(out, field * 8 + static_cast<uint32_t>(wire));
}
void append_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  append_tag(out, field, Wire::bytes);
  append_varint(out, bytes.size());
  out += bytes;
}

// Event: wall_time = 1 (double), step = 2 (int64), then one of file_version = 3, summary = 5,
// session_log = 7.
std::string event_head(double wall_time, int64_t step) {
  std::string event;
  append_tag(event, 1, Wire::fixed64);
  append_little_endian(event, std::bit_cast<uint64_t>(wall_time));
  append_tag(event, 2, Wire::varint);
  append_varint(event, static_cast<uint64_t>(step));
  return event;
}

double wall_time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// TensorBoard takes files with "tfevents" in the name and reads them in the order of their names:
// the second, then a number that keeps a session quick to restart apart.
std::string new_file_name(const std::string& directory) {
  const auto seconds = static_cast<int64_t>(wall_time_now());
  for (int i = 0;; ++i) {
    std::string path = fmt::format("{}/events.out.tfevents.{}.{:03}.zaya", directory, seconds, i);
    if (!std::filesystem::exists(path)) return path;
  }
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = 0xffffffffu;
  for (const char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

std::string tfrecord_frame(std::string_view bytes) {
  std::string frame;
  append_little_endian(frame, static_cast<uint64_t>(bytes.size()));
  append_little_endian(frame, masked_crc32c(frame));
  frame += bytes;
  append_little_endian(frame, masked_crc32c(bytes));
  return frame;
}

std::string version_event(double wall_time) {
  std::string event = event_head(wall_time, 0);
  append_bytes(event, 3, "brain.Event:2");
  return event;
}

std::string scalar_event(double wall_time, int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [name, number] : scalars) {
    // Summary.Value: tag = 1, simple_value = 2 (float).
    std::string value;
    append_bytes(value, 1, name);
    append_tag(value, 2, Wire::fixed32);
    append_little_endian(value, std::bit_cast<uint32_t>(static_cast<float>(number)));
    append_bytes(summary, 1, value);
  }
  std::string event = event_head(wall_time, step);
  append_bytes(event, 5, summary);
  return event;
}

std::string session_start_event(double wall_time, int64_t step) {
  // SessionLog: status = 1, START = 1.
  std::string log;
  append_tag(log, 1, Wire::varint);
  append_varint(log, 1);
  std::string event = event_head(wall_time, step);
  append_bytes(event, 7, log);
  return event;
}

EventWriter::EventWriter(const std::string& directory, int64_t first_step)
    : path_(new_file_name(directory)), file_(path_, std::ios::binary) {
  if (!file_) fail_errno("cannot create", path_);
  append(version_event(wall_time_now()));
  append(session_start_event(wall_time_now(), first_step));
}

void EventWriter::write(int64_t step, const Scalars& scalars) {
  append(scalar_event(wall_time_now(), step, scalars));
}

void EventWriter::append(const std::string& event) {
  file_ << tfrecord_frame(event) << std::flush;
  if (!file_) fail_errno("cannot write", path_);
}

}  // namespace zaya
