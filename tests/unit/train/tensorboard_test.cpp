#include "train/tensorboard.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace zaya {
namespace {

using std::string_literals::operator""s;

// RFC 3720, appendix B.4, and the check value of the Castagnoli polynomial.
TEST(TensorBoard, Crc32cMatchesPublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(TensorBoard, TheMaskRotatesAndAdds) {
  // rotate_right(0xE3069283, 15) = 0x2507C60D; + 0xA282EAD8 = 0xC78AB0E5.
  EXPECT_EQ(masked_crc32c("123456789"), 0xC78AB0E5u);
}

TEST(TensorBoard, AFrameIsLengthChecksumBytesChecksum) {
  const std::string frame = tfrecord_frame("123456789");
  ASSERT_EQ(frame.size(), 8u + 4 + 9 + 4);
  EXPECT_EQ(frame.substr(0, 8), "\x09\0\0\0\0\0\0\0"s);
  EXPECT_EQ(frame.substr(12, 9), "123456789");
  EXPECT_EQ(frame.substr(21), "\xE5\xB0\x8A\xC7"s);
}

TEST(TensorBoard, AScalarEventHasTheBytesOfTheProtocol) {
  // wall_time 1.0; step 300 = AC 02; summary { value { tag "a" simple_value 0.5 } }
  EXPECT_EQ(scalar_event(1.0, 300, {{"a", 0.5}}),
            "\x09\0\0\0\0\0\0\xF0\x3F\x10\xAC\x02\x2A\x0A\x0A\x08\x0A\x01\x61\x15\0\0\0\x3F"s);
}

TEST(TensorBoard, ASessionStartEventCarriesStatusStart) {
  EXPECT_EQ(session_start_event(1.0, 5), "\x09\0\0\0\0\0\0\xF0\x3F\x10\x05\x3A\x02\x08\x01"s);
}

TEST(TensorBoard, AnEventFileBeginsWithItsVersionAndSession) {
  std::string pattern = std::filesystem::temp_directory_path() / "zaya-events-XXXXXX";
  const std::string folder = mkdtemp(pattern.data());
  std::string path;
  {
    EventWriter writer(folder, 3);
    writer.write(3, {{"train/loss", 1.0}});
    path = writer.path();
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  EXPECT_NE(path.find("tfevents"), std::string::npos);
  EXPECT_NE(bytes.str().find("brain.Event:2"), std::string::npos);
  EXPECT_NE(bytes.str().find("train/loss"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace zaya
