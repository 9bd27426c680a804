#pragma once
// TensorBoard event files: TFRecord frames around Event messages
// (tensorflow/core/util/event.proto), encoded by hand, since a scalar needs six fields of them.

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zaya {

// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), as in RFC 3720.
uint32_t crc32c(std::string_view bytes);
// What TFRecord stores: the checksum rotated by 15 bits plus a constant.
uint32_t masked_crc32c(std::string_view bytes);
// length, its checksum, the bytes, their checksum.
std::string tfrecord_frame(std::string_view bytes);

using Scalars = std::vector<std::pair<std::string, double>>;

// One Event message: the format's version, scalars of a step, or the start of a session.
std::string version_event(double wall_time);
std::string scalar_event(double wall_time, int64_t step, const Scalars& scalars);
std::string session_start_event(double wall_time, int64_t step);

// One event file of a run. A resumed run opens a new one in the same directory whose session start
// makes TensorBoard drop what earlier files hold from `first_step` on, so no step shows twice.
class EventWriter {
 public:
  // first_step: the first step that this file will hold.
  EventWriter(const std::string& directory, int64_t first_step);

  void write(int64_t step, const Scalars& scalars);
  const std::string& path() const { return path_; }

 private:
  void append(const std::string& event);

  std::string path_;
  std::ofstream file_;
};

}  // namespace zaya
