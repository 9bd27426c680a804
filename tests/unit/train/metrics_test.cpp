#include "train/metrics.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"

namespace zaya {
namespace {

class MetricsFolder : public ::testing::Test {
 protected:
  MetricsFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "zaya-metrics-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~MetricsFolder() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/metrics.jsonl"; }
  std::string text() const {
    std::ifstream file(path());
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
  }
  void fill(const std::string& content) const { std::ofstream(path()) << content; }
  int event_files() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      count += entry.path().filename().string().rfind("events.out.tfevents", 0) == 0;
    return count;
  }

  std::string folder_;
};

StepMetrics step_metrics(int64_t step) {
  StepMetrics m;
  m.step = step;
  m.tokens = step * 100;
  m.loss = 3.5;
  m.grad_norm = 0.75;
  m.learning_rate = 0.01;
  m.tokens_per_second = 9000;
  m.expert_entropy = {0.9, 0.8};
  return m;
}

TEST(Metrics, AStepIsOneJsonObjectWithThePromisedKeys) {
  const auto json = nlohmann::json::parse(step_line(step_metrics(7)));
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["tokens"], 700);
  EXPECT_EQ(json["loss"], 3.5);
  EXPECT_EQ(json["grad_norm"], 0.75);
  EXPECT_EQ(json["learning_rate"], 0.01);
  EXPECT_EQ(json["tokens_per_second"], 9000);
  EXPECT_EQ(json["expert_load_entropy"], nlohmann::json({0.9, 0.8}));
  EXPECT_EQ(json["skipped_steps"], 0);
  EXPECT_FALSE(json.contains("bits_per_byte"));
  EXPECT_FALSE(json.contains("skipped"));
}

TEST(Metrics, ASkippedStepSaysWhyAndNamesItsSamples) {
  StepMetrics m = step_metrics(7);
  m.skipped = true;
  m.skip_reason = "loss is not finite";
  m.skipped_samples = {3, 1, 4};
  m.loss = std::numeric_limits<double>::quiet_NaN();
  const auto json = nlohmann::json::parse(step_line(m));
  EXPECT_EQ(json["skipped"], "loss is not finite");
  EXPECT_EQ(json["skipped_samples"], nlohmann::json({3, 1, 4}));
  EXPECT_TRUE(json["loss"].is_null());
}

TEST(Metrics, AValidationHasItsOwnKeys) {
  ValidationMetrics m;
  m.step = 3;
  m.loss = 2;
  m.bits_per_byte = 1.5;
  const auto json = nlohmann::json::parse(validation_line(m));
  EXPECT_EQ(json["step"], 3);
  EXPECT_EQ(json["val_loss"], 2.0);
  EXPECT_EQ(json["val_bits_per_byte"], 1.5);
}

TEST_F(MetricsFolder, EachStepIsInTheFileAsSoonAsItIsWritten) {
  MetricsWriter writer(folder_, 0, false);
  writer.write(step_metrics(1));
  EXPECT_EQ(text(), step_line(step_metrics(1)) + "\n");
  EXPECT_EQ(event_files(), 0);
}

TEST_F(MetricsFolder, AResumeDropsWhatCameAfterTheCheckpoint) {
  fill("{\"step\":1}\n{\"step\":2}\n{\"step\":2,\"val_loss\":1}\n{\"step\":3}\n");
  MetricsWriter writer(folder_, 2, false);
  writer.write(step_metrics(3));
  EXPECT_EQ(text(), "{\"step\":1}\n{\"step\":2}\n{\"step\":2,\"val_loss\":1}\n" +
                        step_line(step_metrics(3)) + "\n");
}

TEST_F(MetricsFolder, ATornLastLineIsDropped) {
  fill("{\"step\":1}\n{\"step\":1,\"va");
  truncate_metrics_after(path(), 5);
  EXPECT_EQ(text(), "{\"step\":1}\n");
}

TEST_F(MetricsFolder, AWholeObjectWithoutItsNewlineIsTornToo) {
  fill("{\"step\":1}\n{\"step\":12}");  // perhaps of step 123
  truncate_metrics_after(path(), 50);
  EXPECT_EQ(text(), "{\"step\":1}\n");
}

TEST_F(MetricsFolder, LinesThatAreNoMetricsAreDropped) {
  fill("rubbish\n[1]\n{\"step\":\"1\"}\n{\"step\":1}\n");
  truncate_metrics_after(path(), 5);
  EXPECT_EQ(text(), "{\"step\":1}\n");
}

TEST_F(MetricsFolder, AFileThatIsNotThereStaysAway) {
  truncate_metrics_after(path(), 5);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(MetricsFolder, ANewRunStartsAnEmptyFile) {
  fill("{\"step\":1}\n");
  MetricsWriter writer(folder_, 0, false);
  EXPECT_EQ(text(), "");
}

TEST_F(MetricsFolder, EverySessionHasItsOwnEventFile) {
  { MetricsWriter writer(folder_, 0, true); }
  { MetricsWriter writer(folder_, 1, true); }
  EXPECT_EQ(event_files(), 2);
}

TEST(Metrics, AFolderThatIsNotThereIsAnErrorWithItsPath) {
  try {
    MetricsWriter writer("/nowhere", 0, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/metrics.jsonl"), std::string::npos);
  }
}

TEST(Metrics, AFullDiskIsAnError) {
  std::ofstream full("/dev/full");
  if (!full) GTEST_SKIP() << "no /dev/full here";
  const auto folder = std::filesystem::temp_directory_path() / "zaya-metrics-full";
  std::filesystem::create_directories(folder);
  std::filesystem::remove(folder / "metrics.jsonl");
  std::filesystem::create_symlink("/dev/full", folder / "metrics.jsonl");
  MetricsWriter writer(folder.string(), 0, false);
  EXPECT_THROW(writer.write(step_metrics(1)), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace zaya
