#include "core/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "core/hash.h"
#include "core/random.h"
#include "support/temp_folder.h"

namespace zaya {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// No file may grow beyond a limit while this exists: writes fail in the middle, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

// A file system of 64 KiB in memory. Needs the right to mount.
class TinyDisk {
 public:
  explicit TinyDisk(const fs::path& path) : path_(path) {
    make_folder(path);
    mounted_ = ::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=64k") == 0;
  }
  ~TinyDisk() {
    if (mounted_) ::umount(path_.c_str());
  }
  bool mounted() const { return mounted_; }

 private:
  fs::path path_;
  bool mounted_ = false;
};

TEST(ReadFile, GivesBackWhatWasWritten) {
  const TempFolder folder;
  const std::string bytes("zero \0 byte\n", 12);
  write_file_durably(folder / "a", bytes);
  EXPECT_EQ(read_file(folder / "a"), bytes);
}

TEST(ReadFile, RefusesMoreThanTheLimit) {
  const TempFolder folder;
  write_file_durably(folder / "a", "12345");
  EXPECT_EQ(read_file(folder / "a", 5), "12345");
  EXPECT_THAT(error_of([&] { read_file(folder / "a", 4); }), HasSubstr("at most 4 bytes"));
}

TEST(ReadFile, EndlessDevicesStopAtTheLimit) {
  EXPECT_THAT(error_of([] { read_file("/dev/zero", 100000); }), HasSubstr("at most 100000 bytes"));
}

TEST(ReadFile, NamesTheMissingFileAndTheReason) {
  const TempFolder folder;
  const std::string error = error_of([&] { read_file(folder / "none"); });
  EXPECT_THAT(error, HasSubstr((folder / "none").string()));
  EXPECT_THAT(error, HasSubstr("No such file"));
}

TEST(ReadFile, SaysThatAFolderIsNotAFile) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { read_file(folder.path()); }), HasSubstr("Is a directory"));
}

TEST(InputFile, ReadsToTheEndAndNoFurther) {
  const TempFolder folder;
  write_file_durably(folder / "a", "123456");
  InputFile file(folder / "a");
  EXPECT_EQ(file.size(), 6u);
  char buffer[4];
  EXPECT_EQ(file.read(buffer, 4), 4u);
  EXPECT_EQ(file.read(buffer, 4), 2u);
  EXPECT_EQ(std::string_view(buffer, 2), "56");
  EXPECT_EQ(file.read(buffer, 4), 0u);
}

TEST(MappedFile, HoldsTheFilesBytes) {
  const TempFolder folder;
  write_file_durably(folder / "a", "mapped");
  const MappedFile file(folder / "a");
  EXPECT_EQ(file.text(), "mapped");
}

TEST(MappedFile, AnEmptyFileIsAnEmptyMap) {
  const TempFolder folder;
  write_file_durably(folder / "a", "");
  const MappedFile file(folder / "a");
  EXPECT_EQ(file.size(), 0u);
}

TEST(MappedFile, MovingKeepsTheAddress) {
  const TempFolder folder;
  write_file_durably(folder / "a", "mapped");
  MappedFile first(folder / "a");
  const std::byte* data = first.data();
  const MappedFile second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { MappedFile(folder.path()); }), HasSubstr("got a folder"));
  EXPECT_THAT(error_of([&] { MappedFile("/dev/null"); }), HasSubstr("regular file"));
}

TEST(MappedFile, RefusesAPipeInsteadOfWaitingForAWriter) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { MappedFile(folder / "pipe"); }), HasSubstr("regular file"));
}

TEST(DurableFile, IsInvisibleUntilFinished) {
  const TempFolder folder;
  DurableFile file(folder / "a");
  file.write("text");
  EXPECT_FALSE(fs::exists(folder / "a"));
  file.finish();
  EXPECT_EQ(read_file(folder / "a"), "text");
}

TEST(DurableFile, UnfinishedLeavesTheOldFileAndNothingElse) {
  const TempFolder folder;
  write_file_durably(folder / "a", "old");
  {
    DurableFile file(folder / "a");
    file.write("new");
  }
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_THAT(list_folder(folder.path()), ElementsAre("a"));
}

TEST(DurableFile, MovedFromOwnsNothing) {
  const TempFolder folder;
  DurableFile first(folder / "a");
  first.write("one ");
  {
    DurableFile second(std::move(first));
    second.write("two");
    second.finish();
  }
  EXPECT_EQ(read_file(folder / "a"), "one two");
}

TEST(DurableFile, KeepsTheOrderOfSmallAndLargeWrites) {
  const TempFolder folder;
  std::string expected;
  std::mt19937 random(1);
  DurableFile file(folder / "a");
  // Around the 1 MiB buffer: gathered, filling it exactly, and passed through.
  for (const size_t size : {1u, 100u, 1048476u, 1048575u, 1u, 1048576u, 3000000u, 7u, 0u}) {
    const std::string piece(size, static_cast<char>('a' + random() % 26));
    file.write(piece);
    expected += piece;
  }
  EXPECT_EQ(file.written(), expected.size());
  file.finish();
  EXPECT_TRUE(read_file(folder / "a") == expected);
}

TEST(DurableFile, NewFilesObeyTheUmask) {
  const TempFolder folder;
  const mode_t before = ::umask(027);
  write_file_durably(folder / "a", "x");
  ::umask(before);
  struct stat status;
  ASSERT_EQ(::stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(DurableFile, NamesTheMissingFolder) {
  const TempFolder folder;
  const std::string error = error_of([&] { DurableFile(folder.path() / "none" / "a"); });
  EXPECT_THAT(error, StartsWith("cannot create " + (folder.path() / "none" / "a").string()));
  EXPECT_THAT(error, HasSubstr("No such file or directory"));
}

TEST(DurableFile, AFileThatMayNotGrowFailsWithItsNameAndLeavesNothing) {
  const TempFolder folder;
  const FileSizeLimit limit(1000);
  const std::string error =
      error_of([&] { write_file_durably(folder / "a", std::string(5000, 'x')); });
  EXPECT_THAT(error, HasSubstr((folder / "a").string()));
  EXPECT_THAT(error, HasSubstr("File too large"));
  EXPECT_THAT(list_folder(folder.path()), ElementsAre());
}

TEST(DurableFile, AFullDiskIsNamedWithTheBytesWanted) {
  const TempFolder folder;
  const TinyDisk disk(folder / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a file system needs root";
  write_file_durably(folder / "disk" / "old", "old");
  const std::string error =
      error_of([&] { write_file_durably(folder / "disk" / "big", std::string(3 << 20, 'x')); });
  EXPECT_THAT(error, StartsWith("no space left on " + (folder / "disk").string()));
  EXPECT_THAT(error, HasSubstr("more bytes"));
  EXPECT_THAT(list_folder(folder / "disk"), ElementsAre("old"));
}

TEST(RequireSpace, AFullDiskIsFoundBeforehand) {
  const TempFolder folder;
  const TinyDisk disk(folder / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a file system needs root";
  require_space(folder / "disk", 60000);
  const std::string error = error_of([&] { require_space(folder / "disk", 70000); });
  EXPECT_THAT(error, HasSubstr("wanted 70000 bytes, got 65536"));
}

TEST(RequireSpace, NamesWhatIsWantedAndWhatThereIs) {
  const TempFolder folder;
  require_space(folder.path(), 1000);
  const std::string error = error_of([&] { require_space(folder.path(), uint64_t{1} << 60); });
  EXPECT_THAT(error, StartsWith("no space left on " + folder.path().string()));
  EXPECT_THAT(error, HasSubstr("wanted 1152921504606846976 bytes, got "));
}

TEST(RequireSpace, FindsALimitThatFreeSpaceDoesNotShow) {
  const TempFolder folder;
  const FileSizeLimit limit(1000);
  const std::string error = error_of([&] { require_space(folder.path(), 100000); });
  if (error.empty()) GTEST_SKIP() << "this file system cannot reserve space";
  EXPECT_THAT(error, HasSubstr("cannot reserve 100000 bytes on " + folder.path().string()));
}

TEST(RequireSpace, LeavesNothingBehind) {
  const TempFolder folder;
  require_space(folder.path(), 1 << 20);
  EXPECT_THAT(list_folder(folder.path()), ElementsAre());
}

TEST(RequireSpace, NamesTheMissingFolder) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { require_space(folder / "none", 1); }),
              HasSubstr((folder / "none").string() + ": No such file"));
}

TEST(RequireSpace, FindsAFolderThatMayNotBeWritten) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  const TempFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(error_of([&] { require_space(folder.path(), 1); }), HasSubstr("Permission denied"));
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST(MakeFolder, SaysSoWhenAFileIsInTheWay) {
  const TempFolder folder;
  write_file_durably(folder / "a", "x");
  make_folder(folder.path() / "b" / "c");
  EXPECT_TRUE(fs::is_directory(folder.path() / "b" / "c"));
  EXPECT_THAT(error_of([&] { make_folder(folder / "a"); }), EndsWith("Not a directory"));
}

TEST(RemoveFolder, DoesNotFollowLinks) {
  const TempFolder folder;
  make_folder(folder / "kept");
  write_file_durably(folder.path() / "kept" / "a", "x");
  make_folder(folder / "gone");
  fs::create_directory_symlink(folder / "kept", folder.path() / "gone" / "link");
  remove_folder(folder / "gone");
  EXPECT_THAT(list_folder(folder.path()), ElementsAre("kept"));
  EXPECT_TRUE(fs::exists(folder.path() / "kept" / "a"));
}

TEST(IsPlainName, RefusesWhateverLeavesTheFolder) {
  for (const std::string_view name : {"model.safetensors", "a", "..a", "a b", "ü"})
    EXPECT_TRUE(is_plain_name(name)) << name;
  for (const std::string_view name : {"", ".", "..", "/a", "a/b", "../a", "a\\b", "a\n", "\x7f"})
    EXPECT_FALSE(is_plain_name(name)) << name;
  EXPECT_FALSE(is_plain_name(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_plain_name(std::string(256, 'a')));
}

TEST(Xxh3, KnowsThePublishedSumOfNothing) {
  EXPECT_EQ(xxh3(""), 0x2d06800538d394c2u);  // XXH3_64bits("") in xxHash's own documentation
}

TEST(Xxh3, PiecesSumLikeTheWhole) {
  const std::string text(10000, 'x');
  Xxh3 hash;
  for (size_t begin = 0; begin < text.size(); begin += 777)
    hash.update(text.data() + begin, std::min<size_t>(777, text.size() - begin));
  EXPECT_EQ(hash.digest(), xxh3(text));
}

TEST(Hex, IsReadBackAndNothingElseIs) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{0x0123456789abcdef}, ~uint64_t{0}})
    EXPECT_EQ(from_hex(to_hex(value)), value);
  for (const std::string_view text : {"", "12", "0x00000000000000", "000000000000000G"})
    EXPECT_THROW(from_hex(text), Error) << text;
}

TEST(Random, UniformNumbersFillTheInterval) {
  const Random random(1);
  double sum = 0;
  for (uint64_t i = 0; i < 100000; ++i) {
    const double value = random.uniform(i);
    ASSERT_TRUE(0 <= value && value < 1);
    sum += value;
  }
  // The mean of 100000 has a deviation of 0.0009; five of them.
  EXPECT_NEAR(sum / 100000, 0.5, 0.0046);
}

TEST(Random, NormalNumbersHaveUnitVariance) {
  const Random random(2, "embedding");
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < 100000; ++i) {
    const double value = random.normal(i);
    sum += value;
    squares += value * value;
  }
  // Five deviations: sqrt(1 / n) for the mean, sqrt(2 / n) for the variance.
  EXPECT_NEAR(sum / 100000, 0, 0.016);
  EXPECT_NEAR(squares / 100000, 1, 0.023);
}

TEST(Random, StreamsAndSeedsDiffer) {
  EXPECT_EQ(Random(1, "a").bits(5), Random(1, "a").bits(5));
  EXPECT_NE(Random(1, "a").bits(5), Random(1, "b").bits(5));
  EXPECT_NE(Random(1, "a").bits(5), Random(2, "a").bits(5));
}

TEST(Random, BelowStaysBelow) {
  const Random random(3);
  std::array<int, 3> seen{};
  for (uint64_t i = 0; i < 300; ++i) ++seen.at(random.below(i, 3));
  for (const int count : seen) EXPECT_GT(count, 60);
}

}  // namespace
}  // namespace zaya
