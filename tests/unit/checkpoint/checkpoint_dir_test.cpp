#include "checkpoint/checkpoint_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <random>

#include "support/temp_folder.h"

namespace zaya {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kElements = 2000;

// A checkpoint of three files, every weight of it equal to the step.
fs::path save(const fs::path& run_dir, int64_t step) {
  CheckpointWriter writer(run_dir, step);
  std::vector<float> values(kElements, static_cast<float>(step));
  SafetensorsWriter tensors(writer.path_of("model.safetensors"),
                            {{"embedding", DType::f32, {kElements}}, {"head", DType::f32, {10}}});
  tensors.add("embedding", Tensor(values.data(), DType::f32, {kElements}));
  tensors.add("head", Tensor(values.data(), DType::f32, {10}));
  writer.add(tensors.finish());
  writer.add_bytes("config.json", "{}");
  writer.add_bytes("empty", "");
  return writer.commit({{"tokens", step * 4096}});
}

std::vector<int64_t> steps_in(const fs::path& run_dir) {
  std::vector<int64_t> steps;
  for (const CheckpointEntry& entry : list_checkpoints(run_dir)) steps.push_back(entry.step);
  return steps;
}

void flip_byte(const fs::path& path, size_t at) {
  std::string bytes = read_file(path);
  bytes.at(at) ^= 1;
  write_quickly(path, bytes);
}

std::string verify_error(const fs::path& checkpoint) {
  return error_of([&] { verify_checkpoint(checkpoint); });
}

// Replaces text in a manifest and makes its own checksum right again, as an attacker would.
void forge_manifest(const fs::path& checkpoint, std::string_view from, std::string_view to) {
  std::string text = read_file(checkpoint / "manifest.json");
  const size_t at = text.find(from);
  ASSERT_NE(at, text.npos) << from;
  text.replace(at, from.size(), to);
  Json json = Json::parse(text);
  json.erase("checksum");
  json["checksum"] = to_hex(xxh3(json_text(json)));
  write_quickly(checkpoint / "manifest.json", json_text(json));
}

TEST(Checkpoint, HoldsWhatWasSaved) {
  const TempFolder run;
  const fs::path checkpoint = save(run.path(), 200);
  EXPECT_EQ(checkpoint, run / "step-00000200");
  const Manifest manifest = verify_checkpoint(checkpoint);
  EXPECT_EQ(manifest.step, 200);
  EXPECT_EQ(manifest.state["tokens"], 819200);
  EXPECT_EQ(manifest.files.size(), 3u);
  EXPECT_EQ(TensorFolder::open(checkpoint).get("head").as<float>()[9], 200.0f);
}

TEST(Checkpoint, LeavesNoTemporaryNames) {
  const TempFolder run;
  save(run.path(), 1);
  EXPECT_THAT(list_folder(run.path()), ElementsAre("step-00000001"));
  EXPECT_THAT(list_folder(run / "step-00000001"),
              ElementsAre("config.json", "empty", "manifest.json", "model.safetensors"));
}

TEST(Checkpoint, StateComesBackExactly) {
  const TempFolder run;
  const Json state = {{"digest", ~uint64_t{0}},
                      {"seed", INT64_MIN},
                      {"rate", 0.1},
                      {"tiny", 4.9406564584124654e-324},
                      {"text", "ü\n"}};
  CheckpointWriter writer(run.path(), 1);
  EXPECT_EQ(read_manifest(writer.commit(state)).state, state);
}

TEST(Checkpoint, ANumberThatIsNoneBecomesNullAndStillVerifies) {
  const TempFolder run;
  CheckpointWriter writer(run.path(), 1);
  EXPECT_TRUE(verify_checkpoint(writer.commit({{"loss", std::nan("")}})).state["loss"].is_null());
}

TEST(Checkpoint, UncommittedLeavesNothing) {
  const TempFolder run;
  { CheckpointWriter(run.path(), 1).add_bytes("a", "x"); }
  EXPECT_TRUE(list_folder(run.path()).empty());
}

TEST(Checkpoint, LeftoversOfTheSameStepAreRemovedFirst) {
  const TempFolder run;
  make_folder(run / "step-00000001.partial");
  write_quickly(run.path() / "step-00000001.partial" / "junk", "x");
  save(run.path(), 1);
  EXPECT_FALSE(fs::exists(run.path() / "step-00000001" / "junk"));
}

TEST(Checkpoint, AStepThatExistsIsReplacedByTheNewOne) {
  const TempFolder run;
  const fs::path checkpoint = save(run.path(), 1);
  flip_byte(checkpoint / "model.safetensors", 1000);
  save(run.path(), 1);
  EXPECT_EQ(verify_error(checkpoint), "");
  EXPECT_THAT(list_folder(run.path()), ElementsAre("step-00000001"));
}

TEST(Checkpoint, TwoFilesOfOneNameBreakTheContract) {
  const TempFolder run;
  CheckpointWriter writer(run.path(), 1);
  writer.add_bytes("a", "x");
  EXPECT_THROW(writer.add_bytes("a", "y"), ContractError);
  EXPECT_THROW(writer.path_of("../a"), ContractError);
  EXPECT_THROW(writer.path_of("manifest.json"), ContractError);
}

TEST(Checkpoint, AMissingRunFolderIsNamed) {
  const TempFolder run;
  EXPECT_THAT(error_of([&] { CheckpointWriter(run / "none", 1); }),
              HasSubstr((run / "none").string() + ": wanted a folder"));
}

TEST(Checkpoint, AReadOnlyRunFolderIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  const TempFolder run;
  fs::permissions(run.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(error_of([&] { CheckpointWriter(run.path(), 1); }), HasSubstr("Permission denied"));
  fs::permissions(run.path(), fs::perms::owner_all);
}

TEST(Verify, AFlippedByteIsFoundInItsTensor) {
  const TempFolder run;
  const fs::path checkpoint = save(run.path(), 1);
  const fs::path model = checkpoint / "model.safetensors";
  // From the front: the header's length, the header, a weight; from the back: the last tensor.
  const size_t size = fs::file_size(model);
  const std::vector<std::pair<size_t, std::string>> places{
      {0, "\"header\""}, {50, "\"header\""}, {1000, "\"embedding\""}, {size - 1, "\"head\""}};
  for (const auto& [at, part] : places) {
    flip_byte(model, at);
    EXPECT_THAT(verify_error(checkpoint), HasSubstr("model.safetensors: " + part));
    flip_byte(model, at);
    EXPECT_EQ(verify_error(checkpoint), "");
  }
}

TEST(Verify, AFileOfTheWrongLengthIsNamed) {
  const TempFolder run;
  const fs::path checkpoint = save(run.path(), 1);
  const uint64_t size = fs::file_size(checkpoint / "model.safetensors");
  fs::resize_file(checkpoint / "model.safetensors", size - 1);
  EXPECT_THAT(verify_error(checkpoint),
              HasSubstr(fmt::format("model.safetensors: wanted {} bytes, got {}", size, size - 1)));
  fs::resize_file(checkpoint / "model.safetensors", size + 1);
  EXPECT_THAT(verify_error(checkpoint), HasSubstr("bytes, got"));
}

TEST(Verify, AMissingFileIsNamed) {
  const TempFolder run;
  const fs::path checkpoint = save(run.path(), 1);
  fs::remove(checkpoint / "config.json");
  EXPECT_THAT(verify_error(checkpoint), HasSubstr("config.json: No such file"));
}

TEST(Verify, AFolderInAFilesPlaceIsRefused) {
  const TempFolder run;
  const fs::path checkpoint = save(run.path(), 1);
  fs::remove(checkpoint / "config.json");
  make_folder(checkpoint / "config.json");
  EXPECT_THAT(verify_error(checkpoint), HasSubstr("got a folder"));
}

TEST(Verify, EveryFlippedBitOfAManifestIsFound) {
  const TempFolder run;
  const fs::path checkpoint = save(run.path(), 1);
  const std::string good = read_file(checkpoint / "manifest.json");
  for (size_t at = 0; at < good.size(); ++at) {
    if (good[at] == ' ' || good[at] == '\n') continue;  // layout carries nothing
    std::string bad = good;
    bad[at] ^= 1;
    write_quickly(checkpoint / "manifest.json", bad);
    EXPECT_NE(verify_error(checkpoint), "") << at << ": " << bad.substr(at, 20);
  }
}

TEST(Verify, EveryTruncatedManifestIsFound) {
  const TempFolder run;
  const fs::path checkpoint = save(run.path(), 1);
  const std::string good = read_file(checkpoint / "manifest.json");
  for (size_t size = 0; size + 1 < good.size(); size += 3) {
    write_quickly(checkpoint / "manifest.json", good.substr(0, size));
    EXPECT_NE(verify_error(checkpoint), "") << size;
  }
}

TEST(Verify, ForgedManifestsAreRefused) {
  const TempFolder run;
  const fs::path checkpoint = save(run.path(), 1);
  const std::string good = read_file(checkpoint / "manifest.json");
  const std::vector<std::array<std::string, 3>> forgeries{
      {R"("config.json")", R"("../config.json")", "a file name without folders"},
      {R"("config.json")", R"("/etc/passwd")", "a file name without folders"},
      {R"("config.json")", R"("..")", "a file name without folders"},
      {R"("config.json")", R"("empty")", "comes twice"},
      {R"("config.json")", "7", "wanted a string"},
      {R"("bytes": 2,)", R"("bytes": 9223372036854775807,)", "have no checksum"},
      {"\"bytes\": 2,\n     \"xxh3\"", "\"bytes\": 3, \"xxh3\"", "at most 2"},
      {R"("bytes": 2,)", R"("bytes": -2,)", "integer"},
      {R"("bytes": 2,)", R"("bytes": 18446744073709551615,)", "integer"},
      {R"("files": [)", R"("files": [7,)", "wanted an object"},
      {R"("version": 1)", R"("version": 2)", "version: wanted 1, got 2"},
      {R"("zaya-checkpoint")", R"("other")", "format"},
      {R"("state": {)", R"("state": 1, "rest": {)", "state: wanted an object"},
      {R"("step": 1)", R"("step": -1)", "step"},
  };
  for (const auto& [from, to, error] : forgeries) {
    write_quickly(checkpoint / "manifest.json", good);
    forge_manifest(checkpoint, from, to);
    EXPECT_THAT(verify_error(checkpoint), HasSubstr(error)) << from << " -> " << to;
  }
}

TEST(ListCheckpoints, NewestFirstByNumber) {
  const TempFolder run;
  for (const int64_t step : {5, 20, 100000000, 3}) save(run.path(), step);
  EXPECT_THAT(steps_in(run.path()), ElementsAre(100000000, 20, 5, 3));
}

TEST(ListCheckpoints, CountsOnlyCommittedFolders) {
  const TempFolder run;
  save(run.path(), 1);
  make_folder(run / "step-00000002");  // no manifest
  fs::rename(save(run.path(), 3), run / "step-00000003.partial");
  fs::rename(save(run.path(), 4), run / "step-4");
  fs::rename(save(run.path(), 5), run / "my-step-00000005");
  fs::rename(save(run.path(), 6), run / "step-00000006x");
  fs::create_directory_symlink(run / "step-00000001", run / "step-00000007");
  write_quickly(run / "step-00000008", "a file");
  EXPECT_THAT(steps_in(run.path()), ElementsAre(1));
}

TEST(ListCheckpoints, AMissingFolderIsNamed) {
  const TempFolder run;
  EXPECT_THAT(error_of([&] { list_checkpoints(run / "none"); }),
              HasSubstr((run / "none").string()));
}

TEST(NewestGood, SkipsBadOnesAndSaysWhy) {
  const TempFolder run;
  for (const int64_t step : {1, 2, 3, 4}) save(run.path(), step);
  flip_byte(run.path() / "step-00000004" / "model.safetensors", 1000);
  fs::remove(run.path() / "step-00000003" / "config.json");
  const GoodCheckpoint good = newest_good_checkpoint(run.path());
  ASSERT_TRUE(good.checkpoint);
  EXPECT_EQ(good.checkpoint->step, 2);
  EXPECT_THAT(good.skipped, ElementsAre(HasSubstr("checksum"), HasSubstr("No such file")));
}

TEST(NewestGood, ARenamedCheckpointIsNotTakenForANewerOne) {
  const TempFolder run;
  save(run.path(), 1);
  fs::rename(save(run.path(), 2), run / "step-00000009");
  const GoodCheckpoint good = newest_good_checkpoint(run.path());
  EXPECT_EQ(good.checkpoint->step, 1);
  EXPECT_THAT(good.skipped, ElementsAre(HasSubstr("step: wanted 9, got 2")));
}

TEST(NewestGood, NoneIsNoError) {
  const TempFolder run;
  EXPECT_FALSE(newest_good_checkpoint(run.path()).checkpoint);
}

TEST(Prune, KeepsTheLastAndEveryMth) {
  const TempFolder run;
  for (const int64_t step : {10, 20, 30, 40, 50, 60}) save(run.path(), step);
  EXPECT_EQ(prune_checkpoints(run.path(), 2, 20).size(), 2u);
  EXPECT_THAT(steps_in(run.path()), ElementsAre(60, 50, 40, 20));
  prune_checkpoints(run.path(), 1);
  EXPECT_THAT(steps_in(run.path()), ElementsAre(60));
}

TEST(Prune, NeverRemovesTheLastGoodOne) {
  const TempFolder run;
  for (const int64_t step : {1, 2, 3, 4}) save(run.path(), step);
  for (const int64_t step : {3, 4})
    flip_byte(run.path() / fmt::format("step-{:08}", step) / "model.safetensors", 1000);
  prune_checkpoints(run.path(), 1);
  // 3 and 4 are bad, but newer: for a person to look at.
  EXPECT_THAT(steps_in(run.path()), ElementsAre(4, 3, 2));
}

TEST(Prune, RemovesNothingWhenNoneIsGood) {
  const TempFolder run;
  for (const int64_t step : {1, 2}) {
    save(run.path(), step);
    flip_byte(run.path() / fmt::format("step-{:08}", step) / "config.json", 0);
  }
  EXPECT_TRUE(prune_checkpoints(run.path(), 1).empty());
  EXPECT_THAT(steps_in(run.path()), ElementsAre(2, 1));
}

TEST(Prune, RemovesLeftoversAndNothingOfOthers) {
  const TempFolder run;
  save(run.path(), 1);
  for (const std::string_view name :
       {"step-00000002.partial", "step-00000001.replaced.partial", "tensorboard", "step-2.partial",
        "other.partial", "step-00000003"})
    make_folder(run / name);
  write_quickly(run / "metrics.jsonl", "x");
  prune_checkpoints(run.path(), 1);
  EXPECT_THAT(list_folder(run.path()),
              ElementsAre("metrics.jsonl", "other.partial", "step-00000001", "step-00000003",
                          "step-2.partial", "tensorboard"));
}

TEST(FullDisk, TheSaveFailsClearlyAndTheOldCheckpointStays) {
  const TempFolder folder;
  const fs::path disk = folder / "disk";
  make_folder(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=100k") != 0)
    GTEST_SKIP() << "mounting a file system needs root";
  std::string error;
  for (int64_t step = 1; step < 40 && error.empty(); ++step)
    error = error_of([&] { save(disk, step); });
  EXPECT_THAT(error, HasSubstr("no space left on " + disk.string()));
  const GoodCheckpoint good = newest_good_checkpoint(disk);
  EXPECT_TRUE(good.checkpoint && good.checkpoint->step == steps_in(disk)[0]);
  EXPECT_TRUE(good.skipped.empty());
  for (const std::string& name : list_folder(disk)) EXPECT_FALSE(name.ends_with(".partial"));
  ::umount(disk.c_str());
}

TEST(FullDisk, AFileSizeLimitActsLikeOne) {
  const TempFolder run;
  save(run.path(), 1);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{4000, before.rlim_max};  // the tensors need 8 KB
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const std::string error = error_of([&] { save(run.path(), 2); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(error, HasSubstr("model.safetensors: File too large"));
  EXPECT_THAT(list_folder(run.path()), ElementsAre("step-00000001"));
}

[[noreturn]] void save_for_ever(const fs::path& run_dir, int64_t step, int pipe) {
  try {
    for (;; ++step) {
      save(run_dir, step);
      if (::write(pipe, &step, sizeof step) != sizeof step) ::_exit(1);
      if (step % 3 == 0) save(run_dir, step);  // replacing is no exception
      prune_checkpoints(run_dir, 2);
    }
  } catch (...) {
    ::_exit(2);  // a child must not go on with the parent's tests
  }
}

// A child saves and prunes without pause, saying each committed step through a pipe. It is killed
// some time after it has said `count` of them. Returns the last step it said.
int64_t save_until_killed(const fs::path& run_dir, int64_t first, int64_t count,
                          useconds_t microseconds) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) fail_errno("cannot make", "a pipe");
  const pid_t child = ::fork();
  if (child == 0) save_for_ever(run_dir, first, pipe_ends[1]);
  ::close(pipe_ends[1]);
  int64_t step = 0, last = first - 1;
  while (count-- > 0 && ::read(pipe_ends[0], &step, sizeof step) == sizeof step) last = step;
  ::usleep(microseconds);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  while (::read(pipe_ends[0], &step, sizeof step) == sizeof step) last = step;
  ::close(pipe_ends[0]);
  return last;
}

TEST(Crash, KilledAtAnyMomentTheNewestCommittedCheckpointIsGood) {
  const TempFolder run;
  save(run.path(), 0);
  std::mt19937 random(7);
  int64_t last = 0;
  for (int i = 0; i < 20; ++i) {
    last = save_until_killed(run.path(), last + 1, random() % 3, random() % 20000);
    const GoodCheckpoint good = newest_good_checkpoint(run.path());
    ASSERT_TRUE(good.checkpoint);
    EXPECT_TRUE(good.skipped.empty()) << good.skipped[0];
    // The step that was being said when the child died may be there already.
    EXPECT_TRUE(good.checkpoint->step == last || good.checkpoint->step == last + 1);
    last = good.checkpoint->step;
    const TensorFolder model = TensorFolder::open(good.checkpoint->path);
    EXPECT_EQ(model.get("embedding").as<float>()[kElements - 1], static_cast<float>(last));
  }
  EXPECT_GT(last, 0);
}

TEST(Crash, BeforeTheRenameThePartialFolderDoesNotCount) {
  const TempFolder run;
  save(run.path(), 1);
  // All but the rename has happened.
  fs::rename(save(run.path(), 2), run / "step-00000002.partial");
  EXPECT_EQ(newest_good_checkpoint(run.path()).checkpoint->step, 1);
  save(run.path(), 2);
  EXPECT_EQ(newest_good_checkpoint(run.path()).checkpoint->step, 2);
}

}  // namespace
}  // namespace zaya
