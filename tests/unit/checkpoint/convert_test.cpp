#include "checkpoint/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "checkpoint/hf_config.h"
#include "checkpoint/hf_model.h"
#include "checkpoint/model_file.h"
#include "ops/linear/quantize.h"
#include "support/temp_folder.h"

namespace zaya {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr StoredForm kCurrent{}, kOriginal{Layout::original}, kInt8{Layout::current, 8},
    kInt4{Layout::current, 4};

fs::path fixture(const std::string& model) {
  return fs::path(ZAYA_SOURCE_DIR) / "tests/fixtures" / model;
}

ConvertSummary convert_to(const fs::path& in, const fs::path& out, const StoredForm& form,
                          uint64_t shard_bytes = 1 << 30) {
  Context ctx;
  ConvertOptions options;
  options.to = form;
  options.shard_bytes = shard_bytes;
  return convert_model(ctx, in, out, options, nullptr);
}

void expect_same_tensors(const fs::path& a, const fs::path& b) {
  const TensorFolder first = TensorFolder::open(a), second = TensorFolder::open(b);
  ASSERT_EQ(first.names(), second.names());
  for (const std::string& name : first.names()) {
    const Tensor x = first.get(name), y = second.get(name);
    EXPECT_EQ(x.dtype, y.dtype) << name;
    ASSERT_EQ(x.shape, y.shape) << name;
    EXPECT_EQ(std::memcmp(x.data, y.data, static_cast<size_t>(x.bytes())), 0) << name;
  }
}

Json meaning(const fs::path& folder) {
  return hf_config_to_json(read_model_file(folder / "config.json").config);
}

std::vector<float> logits_of(Zaya& model) {
  Context ctx;
  TokenBatch batch;
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 20; ++i) ids.push_back(i * 7 % 250);
  const std::vector<int32_t> offsets{0, 20};
  batch.set(ids, ids, offsets);
  model.forward(ctx, batch);
  std::vector<float> logits(static_cast<size_t>(20 * model.config().vocab_size));
  model.logits(ctx, Tensor(logits.data(), DType::f32, {20, model.config().vocab_size}), 0);
  return logits;
}

std::vector<float> loaded_logits(const fs::path& folder) {
  Context ctx;
  Zaya model = load_model(ctx, folder, DType::f32, Gradients::none);
  return logits_of(model);
}

std::vector<float> opened_logits(const fs::path& folder) {
  Context ctx;
  Zaya model = open_model(ctx, folder, {DType::f32});
  return logits_of(model);
}

double relative_error(const std::vector<float>& got, const std::vector<float>& wanted) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    difference += std::pow(double{got[i]} - double{wanted[i]}, 2);
    norm += std::pow(double{wanted[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

// The fixture's tensors as another float type (truncated, which loses nothing that matters here).
void write_as(const fs::path& out, const std::string& model, DType dtype) {
  const TensorFolder in = TensorFolder::open(fixture(model));
  std::vector<TensorDeclaration> declarations;
  for (const std::string& name : in.names())
    declarations.push_back({name, dtype, in.get(name).shape});
  SafetensorsWriter writer(out / "model.safetensors", declarations);
  for (const std::string& name : in.names()) {
    const Tensor from = in.get(name);
    std::vector<uint16_t> bits;
    for (int64_t i = 0; i < from.size(); ++i) {
      const float value = from.as<float>()[i];
      const auto u = std::bit_cast<uint32_t>(value);
      const int exponent = static_cast<int>(u >> 23 & 0xff) - 127 + 15;
      if (dtype == DType::bf16)
        bits.push_back(bf16(value).bits);
      else if (exponent <= 0)
        bits.push_back(static_cast<uint16_t>(u >> 16 & 0x8000));
      else
        bits.push_back(static_cast<uint16_t>(
            (u >> 16 & 0x8000) | static_cast<uint32_t>(exponent) << 10 | (u >> 13 & 0x3ff)));
    }
    writer.add(name, Tensor(bits.data(), dtype, from.shape));
  }
  writer.finish();
  fs::copy_file(fixture(model) / "config.json", out / "config.json");
}

TEST(Convert, ThereAndBackGivesTheSameBitsAndMeaning) {
  for (const char* model : {"original-layout", "original-scalars", "native-a", "native-sliding"}) {
    const TempFolder folder;
    const bool original = std::string(model).starts_with("original");
    convert_to(fixture(model), folder / "there", original ? kCurrent : kOriginal);
    convert_to(folder / "there", folder / "back", original ? kOriginal : kCurrent);
    expect_same_tensors(fixture(model), folder / "back");
    EXPECT_EQ(meaning(folder / "back"), meaning(fixture(model))) << model;
    EXPECT_EQ(meaning(folder / "there"), meaning(fixture(model))) << model;
  }
}

TEST(Convert, BothLayoutsComputeTheSameBits) {
  for (const char* model : {"original-layout", "native-sliding"}) {
    const TempFolder folder;
    const bool original = std::string(model).starts_with("original");
    convert_to(fixture(model), folder / "other", original ? kCurrent : kOriginal);
    EXPECT_EQ(loaded_logits(folder / "other"), loaded_logits(fixture(model))) << model;
    EXPECT_EQ(opened_logits(folder / "other"), loaded_logits(fixture(model))) << model;
  }
}

TEST(Convert, HalfWidthFloatsKeepTheirBits) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const TempFolder folder;
    make_folder(folder / "half");
    write_as(folder / "half", "original-scalars", dtype);
    convert_to(folder / "half", folder / "there", kCurrent);
    EXPECT_EQ(TensorFolder::open(folder / "there").get("model.norm.weight").dtype, dtype);
    convert_to(folder / "there", folder / "back", kOriginal);
    expect_same_tensors(folder / "half", folder / "back");
    EXPECT_EQ(opened_logits(folder / "there"), loaded_logits(folder / "half"));
    // 2^-9 (bf16) or 2^-10 (f16, truncated) a weight.
    EXPECT_LT(
        relative_error(loaded_logits(folder / "half"), loaded_logits(fixture("original-scalars"))),
        0.05);
  }
}

TEST(Convert, MoreThanAShardBecomesFilesWithAnIndex) {
  const TempFolder folder;
  const ConvertSummary summary =
      convert_to(fixture("native-a"), folder / "out", kOriginal, 100'000);
  EXPECT_GT(summary.files.size(), 2u);
  EXPECT_EQ(summary.files[0],
            fmt::format("model-00001-of-{:05}.safetensors", summary.files.size()));
  for (const std::string& name : summary.files)
    EXPECT_LT(fs::file_size(folder.path() / "out" / name), 200'000u);
  const Json index = parse_json_file(folder.path() / "out" / "model.safetensors.index.json");
  EXPECT_EQ(index["weight_map"].size(), TensorFolder::open(folder / "out").names().size());
  convert_to(folder / "out", folder / "back", kCurrent);
  expect_same_tensors(fixture("native-a"), folder / "back");
}

TEST(Convert, CodesAreThoseOfTheOpAndTheRestStaysFloat) {
  for (const StoredForm& form : {kInt8, kInt4}) {
    const TempFolder folder;
    const ConvertSummary summary = convert_to(fixture("original-layout"), folder / "out", form);
    EXPECT_EQ(summary.warnings.size(), 1u);  // 48 inputs of the experts' second matrix
    const ModelFile file = read_model_file(folder.path() / "out" / "config.json");
    const TensorFolder tensors = TensorFolder::open(folder / "out");
    const TensorFolder source = TensorFolder::open(fixture("original-layout"));
    for (const ParameterSpec& spec : parameter_specs(file.config)) {
      const Tensor found = tensors.get(spec.name);
      if (!stored_as_codes(spec, form)) {
        EXPECT_EQ(found.dtype, DType::f32) << spec.name;
        continue;
      }
      EXPECT_EQ(found.dtype, codes_dtype(form.bits)) << spec.name;
      const Weight codes{found, tensors.get(spec.name + ".scales")};
      const std::vector<StoredTensor> parts = stored_tensors(spec, file.config, Layout::original);
      const int64_t rows = codes.rows() / static_cast<int64_t>(parts.size());
      for (size_t i = 0; i < parts.size(); ++i) {
        const Weight part =
            codes.row_range(static_cast<int64_t>(i) * rows, static_cast<int64_t>(i + 1) * rows);
        std::vector<uint8_t> own(static_cast<size_t>(part.values.bytes()));
        std::vector<bf16> scales(static_cast<size_t>(part.scales.size()));
        Context ctx;
        quantize(ctx,
                 {Tensor(own.data(), found.dtype, {rows, part.values.columns()}),
                  Tensor(scales.data(), DType::bf16, {rows, part.scales.columns()})},
                 source.get(parts[i].name));
        EXPECT_EQ(std::memcmp(own.data(), part.values.data, own.size()), 0) << spec.name;
        EXPECT_EQ(std::memcmp(scales.data(), part.scales.data, scales.size() * 2), 0) << spec.name;
      }
    }
  }
}

TEST(Convert, CodesOpenEverywhereAndComputeNearlyTheSame) {
  const TempFolder folder;
  const std::vector<float> exact = loaded_logits(fixture("native-a"));
  convert_to(fixture("native-a"), folder / "int8", kInt8);
  convert_to(fixture("native-a"), folder / "int4", kInt4);
  // Half a code of 127 or 8 in each weight, as seen through three blocks.
  EXPECT_LT(relative_error(loaded_logits(folder / "int8"), exact), 0.05);
  EXPECT_LT(relative_error(loaded_logits(folder / "int4"), exact), 0.7);
  EXPECT_LT(relative_error(opened_logits(folder / "int8"), loaded_logits(folder / "int8")), 1e-2);
  convert_to(folder / "int8", folder / "floats", kOriginal);
  EXPECT_EQ(TensorFolder::open(folder / "floats").get("model.embed_tokens.weight").dtype,
            DType::bf16);
  EXPECT_LT(relative_error(loaded_logits(folder / "floats"), loaded_logits(folder / "int8")), 0.05);
}

TEST(Convert, ASkipSlotThatMayBeChosenIsWarnedOf) {
  const TempFolder folder;
  // The fixture's skip slot has a bias like any other's.
  const ConvertSummary may = convert_to(fixture("original-layout"), folder / "may", kCurrent);
  ASSERT_EQ(may.warnings.size(), 1u);
  EXPECT_THAT(may.warnings[0], HasSubstr("a token may choose the skip slot"));
  EXPECT_EQ(read_model_file(folder.path() / "may" / "config.json").json["zaya_skip"], "pass");
  // There is nothing to say once the bias is as low as in the released checkpoints.
  const TensorFolder in = TensorFolder::open(fixture("original-layout"));
  std::vector<TensorDeclaration> declarations;
  for (const std::string& name : in.names())
    declarations.push_back({name, DType::f32, in.get(name).shape});
  make_folder(folder / "low");
  SafetensorsWriter writer(folder.path() / "low" / "model.safetensors", declarations);
  for (const std::string& name : in.names()) {
    const bool biases = name.ends_with("balancing_biases");
    std::vector<float> low{0, 0, 0.25f, 0, -1};
    writer.add(name, biases ? Tensor(low.data(), DType::f32, {5}) : in.get(name));
  }
  writer.finish();
  fs::copy_file(fixture("original-layout") / "config.json", folder.path() / "low" / "config.json");
  EXPECT_THAT(convert_to(folder / "low", folder / "silent", kCurrent).warnings, IsEmpty());
}

TEST(Convert, TokenizerAndGenerationSettingsComeAlong) {
  const TempFolder folder;
  fs::copy(fixture("native-a"), folder / "in");
  write_quickly(folder.path() / "in" / "tokenizer.json", "{}");
  write_quickly(folder.path() / "in" / "generation_config.json", "{\"a\": 1}");
  write_quickly(folder.path() / "in" / "notes.txt", "x");
  const ConvertSummary summary = convert_to(folder / "in", folder / "out", kOriginal);
  EXPECT_THAT(list_folder(folder / "out"), ElementsAre("config.json", "generation_config.json",
                                                       "model.safetensors", "tokenizer.json"));
  EXPECT_EQ(read_file(folder.path() / "out" / "generation_config.json"), "{\"a\": 1}");
}

TEST(Convert, AFullFolderIsReplacedOnlyWhenToldTo) {
  const TempFolder folder;
  make_folder(folder / "out");
  write_quickly(folder.path() / "out" / "mine", "x");
  EXPECT_THAT(error_of([&] { convert_to(fixture("native-a"), folder / "out", kOriginal); }),
              HasSubstr("out: wanted a new or an empty folder, found files in it"));
  EXPECT_THAT(list_folder(folder / "out"), ElementsAre("mine"));
  Context ctx;
  const ConvertOptions force{kOriginal, 1 << 30, Existing::replace};
  convert_model(ctx, fixture("native-a"), folder / "out", force, nullptr);
  EXPECT_THAT(list_folder(folder / "out"), ElementsAre("config.json", "model.safetensors"));
  EXPECT_THAT(list_folder(folder.path()), ElementsAre("out"));
}

TEST(Convert, TheInputIsNeverReplaced) {
  const TempFolder folder;
  make_folder(folder / "models");
  fs::copy(fixture("native-a"), folder.path() / "models" / "in");
  Context ctx;
  const ConvertOptions force{kOriginal, 1 << 30, Existing::replace};
  fs::create_directory_symlink(folder / "models", folder / "link");
  for (const fs::path& out :
       {folder.path() / "models" / "in", folder / "models", folder / "link", folder.path()})
    EXPECT_THAT(
        error_of([&] { convert_model(ctx, folder.path() / "models" / "in", out, force, nullptr); }),
        HasSubstr("wanted another folder than the one that holds the model"))
        << out;
}

TEST(Convert, AFailureHalfWayLeavesNothing) {
  const TempFolder folder;
  Context ctx;
  const auto fail_at_half = [](uint64_t done, uint64_t total) {
    if (done > total / 2) fail("stopped");
  };
  EXPECT_EQ(error_of([&] {
              convert_model(ctx, fixture("native-a"), folder / "out", {kInt8}, fail_at_half);
            }),
            "stopped");
  EXPECT_THAT(list_folder(folder.path()), IsEmpty());
}

TEST(Convert, WeightsThatAreNotFiniteAreNotMadeCodes) {
  const TempFolder folder;
  fs::copy(fixture("native-a"), folder / "in");
  const fs::path weights = folder.path() / "in" / "model.safetensors";
  std::string bytes = read_file(weights);
  const SafetensorsFile file = SafetensorsFile::open(weights);
  const auto at = static_cast<const char*>(file.get("model.embed_tokens.weight").data) -
                  file.map().text().data();
  bytes.replace(static_cast<size_t>(at), 4, std::string_view("\0\0\x80\x7f", 4));
  write_quickly(weights, bytes);
  EXPECT_THAT(error_of([&] { convert_to(folder / "in", folder / "out", kInt8); }),
              HasSubstr("model.embed_tokens.weight: wanted finite weights"));
  EXPECT_FALSE(fs::exists(folder / "out"));
}

TEST(OutputFolder, AFolderOfThatNameThatIsNotItsOwnIsLeftAlone) {
  const TempFolder folder;
  make_folder(folder / "out.partial");
  write_quickly(folder.path() / "out.partial" / "mine", "x");
  EXPECT_THAT(error_of([&] { OutputFolder(folder / "out", Existing::keep); }),
              HasSubstr("out.partial: wanted nothing of that name"));
  EXPECT_TRUE(fs::exists(folder.path() / "out.partial" / "mine"));
}

TEST(OutputFolder, WhatACrashLeftIsRemoved) {
  const TempFolder folder;
  make_folder(folder / "out.partial");
  write_quickly(folder.path() / "out.partial" / ".zaya-partial", "");
  write_quickly(folder.path() / "out.partial" / "model.safetensors", "half");
  OutputFolder output(folder.path() / "out/", Existing::keep);
  EXPECT_THAT(list_folder(output.partial()), ElementsAre(".zaya-partial"));
  output.commit();
  EXPECT_THAT(list_folder(folder.path()), ElementsAre("out"));
}

// SIGKILL between any two steps: what is there is the old folder or the new one, whole, and the
// next writer is not in its own way.
TEST(OutputFolder, ACrashInTheMiddleOfCommitStopsNobody) {
  for (const Existing existing : {Existing::keep, Existing::replace}) {
    const TempFolder folder;
    for (int crash = 0; crash < 40; ++crash) {
      const pid_t child = ::fork();
      if (child == 0) {
        try {
          OutputFolder output(folder / "out", existing);
          for (const char* name : {"a", "b"}) write_quickly(output.partial() / name, "x");
          ::usleep(static_cast<useconds_t>(crash % 3) * 100);
          output.commit();
        } catch (...) {
          ::_exit(2);
        }
        ::_exit(0);
      }
      ::usleep(static_cast<useconds_t>(crash) * 150);
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
      if (!fs::exists(folder / "out")) continue;
      EXPECT_TRUE(fs::exists(folder.path() / "out" / "b"));
      if (existing == Existing::keep) fs::remove_all(folder / "out");
    }
    OutputFolder last(folder / "out", existing);
    write_quickly(last.partial() / "c", "x");
    last.commit();
    EXPECT_THAT(list_folder(folder / "out"), ElementsAre("c"));
    EXPECT_THAT(list_folder(folder.path()), ElementsAre("out"));
  }
}

TEST(OutputFolder, OneWriterAtATime) {
  const TempFolder folder;
  OutputFolder first(folder / "out", Existing::keep);
  EXPECT_THAT(error_of([&] { OutputFolder(folder / "out", Existing::keep); }),
              HasSubstr("another process is writing to it"));
  EXPECT_TRUE(fs::exists(first.partial()));
}

}  // namespace
}  // namespace zaya
