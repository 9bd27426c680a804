#include "checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "support/temp_folder.h"

namespace zaya {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> counting(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.5f);
  return values;
}

// Writes one f32 tensor per name, of 3 elements.
FileSums write_model(const fs::path& path, const std::vector<std::string>& names) {
  std::vector<float> values = counting(3);
  std::vector<TensorDeclaration> declarations;
  for (const std::string& name : names) declarations.push_back({name, DType::f32, {3}});
  SafetensorsWriter writer(path, declarations);
  for (const std::string& name : names) writer.add(name, Tensor(values.data(), DType::f32, {3}));
  return writer.finish();
}

void write_index(const fs::path& folder, std::string_view weight_map) {
  write_quickly(folder / "model.safetensors.index.json",
                fmt::format(R"({{"metadata": {{}}, "weight_map": {}}})", weight_map));
}

TEST(Safetensors, WhatIsWrittenIsRead) {
  const TempFolder folder;
  std::vector<float> values = counting(6);
  std::vector<int64_t> ids{-1, INT64_MAX};
  SafetensorsWriter writer(folder / "a", {{"w", DType::f32, {2, 3}}, {"ids", DType::i64, {2}}},
                           {{"format", "pt"}});
  writer.add("w", Tensor(values.data(), DType::f32, {2, 3}));
  writer.add("ids", Tensor(ids.data(), DType::i64, {2}));
  writer.finish();

  const SafetensorsFile file = SafetensorsFile::open(folder / "a");
  EXPECT_THAT(file.names(), ElementsAre("w", "ids"));
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
  const Tensor w = file.get("w");
  EXPECT_EQ(w.shape, (Shape{2, 3}));
  EXPECT_EQ(std::memcmp(w.as<float>(), values.data(), 24), 0);
  EXPECT_EQ(file.get("ids").as<int64_t>()[1], INT64_MAX);
}

TEST(Safetensors, EveryTypeAndRankIsReadBack) {
  const TempFolder folder;
  const std::vector<uint64_t> bytes(64, 0x4040404040404040);
  std::vector<TensorDeclaration> declarations;
  const Shape shapes[] = {{}, {0}, {3}, {2, 3}, {2, 3, 4}, {2, 3, 2, 2}, {4, 0, 2}};
  for (int dtype = 0; dtype <= static_cast<int>(DType::boolean); ++dtype)
    for (const Shape& shape : shapes)
      declarations.push_back({fmt::format("{}", declarations.size()), DType(dtype), shape});
  SafetensorsWriter writer(folder / "a", declarations);
  for (const auto& [name, dtype, shape] : declarations)
    writer.add(name, Tensor(const_cast<uint64_t*>(bytes.data()), dtype, shape));
  const FileSums sums = writer.finish();
  EXPECT_EQ(sums.bytes, writer.file_bytes());

  const SafetensorsFile file = SafetensorsFile::open(folder / "a");
  EXPECT_EQ(file.names().size(), declarations.size());
  for (const auto& [name, dtype, shape] : declarations) {
    const Tensor tensor = file.get(name);
    EXPECT_EQ(tensor.dtype, dtype);
    EXPECT_EQ(tensor.shape, shape);
    EXPECT_EQ(std::memcmp(tensor.data, bytes.data(), static_cast<size_t>(tensor.bytes())), 0);
    // Odd numbers of bytes come before wider types here, so some tensors had to be copied.
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data) % size_of(dtype), 0u);
  }
}

TEST(Safetensors, AFileOfNoTensorsIsRead) {
  const TempFolder folder;
  SafetensorsWriter(folder / "a", {}).finish();
  EXPECT_TRUE(SafetensorsFile::open(folder / "a").names().empty());
}

TEST(Safetensors, MovingAFileKeepsItsTensors) {
  const TempFolder folder;
  write_model(folder / "a", {"x"});
  SafetensorsFile first = SafetensorsFile::open(folder / "a");
  const Tensor x = first.get("x");
  const SafetensorsFile second = std::move(first);
  EXPECT_EQ(second.get("x").data, x.data);
  EXPECT_EQ(x.as<float>()[2], 2.5f);
}

TEST(Safetensors, AMissingTensorIsNamed) {
  const TempFolder folder;
  write_model(folder / "a", {"x"});
  const SafetensorsFile file = SafetensorsFile::open(folder / "a");
  EXPECT_EQ(file.find("y"), nullptr);
  EXPECT_EQ(error_of([&] { file.get("y"); }),
            (folder / "a").string() + ": wanted a tensor \"y\", got none of that name");
}

TEST(SafetensorsWriter, DataStartsAtAMultipleOf64) {
  const TempFolder folder;
  for (size_t length = 1; length < 70; length += 7) {
    write_model(folder / "a", {std::string(length, 'n')});
    const MappedFile file(folder / "a");
    EXPECT_EQ((file.size() - 12) % 64, 0u);
  }
}

TEST(SafetensorsWriter, RoundsToBf16WhereThatIsDeclared) {
  const TempFolder folder;
  // More than one piece of the rounding buffer.
  std::vector<float> values = counting(70000);
  SafetensorsWriter writer(folder / "a", {{"w", DType::bf16, {70, 1000}}});
  writer.add("w", Tensor(values.data(), DType::f32, {70, 1000}));
  writer.finish();
  const SafetensorsFile file = SafetensorsFile::open(folder / "a");
  const bf16* rounded = file.get("w").as<bf16>();
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(rounded[i].bits, bf16(values[i]).bits) << i;
}

TEST(SafetensorsWriter, WritesSlicesOfColumns) {
  const TempFolder folder;
  std::vector<float> values = counting(12);
  const Tensor columns = Tensor(values.data(), DType::f32, {3, 4}).column_range(1, 3);
  SafetensorsWriter writer(folder / "a",
                           {{"w", DType::f32, {3, 2}}, {"rounded", DType::bf16, {3, 2}}});
  writer.add("w", columns);
  writer.add("rounded", columns);
  writer.finish();
  const SafetensorsFile file = SafetensorsFile::open(folder / "a");
  const float* w = file.get("w").as<float>();
  EXPECT_THAT(std::vector(w, w + 6), ElementsAre(1.5f, 2.5f, 5.5f, 6.5f, 9.5f, 10.5f));
  EXPECT_EQ(static_cast<float>(file.get("rounded").as<bf16>()[5]), 10.5f);
}

TEST(SafetensorsWriter, KnowsTheSizeBeforehand) {
  const TempFolder folder;
  SafetensorsWriter writer(folder / "a", {{"w", DType::f32, {2, 3}}});
  const uint64_t planned = writer.file_bytes();
  std::vector<float> values = counting(6);
  writer.add("w", Tensor(values.data(), DType::f32, {2, 3}));
  EXPECT_EQ(writer.finish().bytes, planned);
  EXPECT_EQ(fs::file_size(folder / "a"), planned);
}

TEST(SafetensorsWriter, TensorsOutOfOrderOrOfAnotherShapeBreakTheContract) {
  const TempFolder folder;
  std::vector<float> values = counting(6);
  const Tensor six(values.data(), DType::f32, {6});
  const std::vector<TensorDeclaration> declarations{{"a", DType::f32, {6}}, {"b", DType::f32, {6}}};
  EXPECT_THROW(SafetensorsWriter(folder / "x", declarations).add("b", six), ContractError);
  EXPECT_THROW(SafetensorsWriter(folder / "x", declarations).add("a", six.reshaped({2, 3})),
               ContractError);
  EXPECT_THROW(SafetensorsWriter(folder / "x", declarations).finish(), ContractError);
  EXPECT_TRUE(list_folder(folder.path()).empty());
}

TEST(SafetensorsWriter, SumsEachTensor) {
  const TempFolder folder;
  const FileSums sums = write_model(folder / "a", {"x", "y"});
  ASSERT_EQ(sums.chunks.size(), 3u);
  EXPECT_EQ(sums.chunks[1].part, "x");
  EXPECT_EQ(sums.chunks[1].xxh3, xxh3(counting(3).data(), 12));
  verify_file(folder.path(), sums);
}

TEST(TensorFolder, ReadsASingleFile) {
  const TempFolder folder;
  write_model(folder / "model.safetensors", {"x", "y"});
  EXPECT_THAT(TensorFolder::open(folder.path()).names(), ElementsAre("x", "y"));
  EXPECT_THAT(TensorFolder::open(folder / "model.safetensors").names(), ElementsAre("x", "y"));
}

TEST(TensorFolder, ReadsShardsByTheIndex) {
  const TempFolder folder;
  write_model(folder / "one", {"a", "unlisted"});
  write_model(folder / "two", {"b", "c"});
  write_index(folder.path(), R"({"b": "two", "a": "one", "c": "two"})");
  const TensorFolder model = TensorFolder::open(folder.path());
  EXPECT_THAT(model.names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(model.files().size(), 2u);
  EXPECT_EQ(model.get("c").as<float>()[0], 0.5f);
  EXPECT_EQ(model.find("unlisted"), nullptr);
}

TEST(TensorFolder, IndexPathsThatLeaveTheFolderAreRefused) {
  const TempFolder folder;
  make_folder(folder / "model");
  write_model(folder / "secret", {"a"});
  const std::vector<std::string> shards{
      "../secret", (folder / "secret").string(), "..",           ".",
      "",          "sub/../../secret",           "..\\\\secret", "secret\\u0000.safetensors"};
  for (const std::string& shard : shards) {
    write_index(folder / "model", fmt::format(R"({{"a": "{}"}})", shard));
    EXPECT_THAT(error_of([&] { TensorFolder::open(folder / "model"); }),
                HasSubstr("weight_map.a: wanted a file name without folders, got "))
        << shard;
  }
}

TEST(TensorFolder, AMissingShardIsNamed) {
  const TempFolder folder;
  write_index(folder.path(), R"({"a": "none.safetensors"})");
  EXPECT_THAT(error_of([&] { TensorFolder::open(folder.path()); }),
              HasSubstr((folder / "none.safetensors").string() + ": No such file"));
}

TEST(TensorFolder, ATensorThatTheShardLacksIsNamed) {
  const TempFolder folder;
  write_model(folder / "one", {"a"});
  write_index(folder.path(), R"({"a": "one", "b": "one"})");
  EXPECT_THAT(error_of([&] { TensorFolder::open(folder.path()); }),
              HasSubstr("one: wanted a tensor \"b\""));
}

TEST(TensorFolder, IndexFilesOfTheWrongFormAreRefused) {
  const TempFolder folder;
  for (const std::string_view index :
       {"", "[]", "{}", R"({"weight_map": []})", R"({"weight_map": {"a": 1}})",
        R"({"weight_map": {"a": "one", "a": "one"}})", R"({"weight_map": {"a": null}})"}) {
    write_quickly(folder / "model.safetensors.index.json", index);
    EXPECT_THROW(TensorFolder::open(folder.path()), Error) << index;
  }
}

TEST(TensorFolder, AFolderWithoutAModelSaysWhatItLacks) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { TensorFolder::open(folder.path()); }),
              HasSubstr("wanted model.safetensors or model.safetensors.index.json, got neither"));
  EXPECT_THAT(error_of([&] { TensorFolder::open(folder / "none"); }), HasSubstr("got nothing"));
}

}  // namespace
}  // namespace zaya
