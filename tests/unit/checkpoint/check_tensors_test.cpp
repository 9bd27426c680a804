#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "checkpoint/convert.h"
#include "checkpoint/hf_model.h"
#include "checkpoint/model_file.h"
#include "support/temp_folder.h"

namespace zaya {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

fs::path fixture(const std::string& model) {
  return fs::path(ZAYA_SOURCE_DIR) / "tests/fixtures" / model;
}

// A tensor that a test puts among those of a folder.
struct Put {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<float> data;
};

Put copy_of(const TensorFolder& in, const std::string& name, const std::string& as) {
  const Tensor from = in.get(name);
  const auto* words = static_cast<const float*>(from.data);
  return {as, from.dtype, from.shape, {words, words + from.bytes() / 4}};
}

// The model's folder with some tensors left out and others put in.
void write_changed(const fs::path& in, const fs::path& out,
                   const std::vector<std::string>& left_out, const std::vector<Put>& put) {
  const TensorFolder source = TensorFolder::open(in);
  std::vector<Put> all;
  for (const std::string& name : source.names())
    if (std::find(left_out.begin(), left_out.end(), name) == left_out.end())
      all.push_back(copy_of(source, name, name));
  all.insert(all.end(), put.begin(), put.end());
  std::vector<TensorDeclaration> declarations;
  for (const Put& p : all) declarations.push_back({p.name, p.dtype, p.shape});
  make_folder(out);
  SafetensorsWriter writer(out / "model.safetensors", declarations);
  for (Put& p : all) writer.add(p.name, Tensor(p.data.data(), p.dtype, p.shape));
  writer.finish();
  write_quickly(out / "config.json", read_file(in / "config.json"));
}

std::string check_error(const fs::path& folder) {
  const ModelFile file = read_model_file(folder / "config.json");
  const TensorFolder tensors = TensorFolder::open(folder);
  return error_of([&] { check_tensors(file.config, file.form, tensors); });
}

TEST(CheckTensors, BothLayoutsAreWhole) {
  for (const char* model :
       {"native-a", "native-sliding", "native-packed", "original-layout", "original-scalars"})
    EXPECT_EQ(check_error(fixture(model)), "") << model;
}

TEST(CheckTensors, ListsAllThatIsWrongInOneError) {
  const TempFolder folder;
  const std::string norm = "model.final_norm.weight", temp = "model.layers.2.self_attn.qkv.temp";
  const std::string expert = "model.layers.3.zaya_block.experts.local_experts.2.linear_fc1.weight";
  const TensorFolder in = TensorFolder::open(fixture("original-layout"));
  write_changed(fixture("original-layout"), folder / "m", {norm, temp, expert},
                {copy_of(in, norm, "model.last_norm.weight"),
                 {temp, DType::f32, {3}, {1, 1, 1}},
                 {expert, DType::i32, {96, 128}, std::vector<float>(96 * 128)}});
  EXPECT_THAT(check_error(folder / "m"),
              AllOf(HasSubstr("(4 differences)"), HasSubstr("missing: " + norm + " [128]"),
                    HasSubstr("not part of the model: \"model.last_norm.weight\""),
                    HasSubstr(temp + ": wanted shape [2], got [3]"),
                    HasSubstr(expert + ": wanted F32, BF16 or F16, got I32")));
}

TEST(CheckTensors, AConfigOfTheOtherLayoutIsNamed) {
  const TempFolder folder;
  Context ctx;
  convert_model(ctx, fixture("native-a"), folder / "m", {{Layout::original}}, nullptr);
  write_quickly(folder.path() / "m" / "config.json",
                read_file(fixture("native-a") / "config.json"));
  EXPECT_THAT(check_error(folder / "m"),
              HasSubstr("config.json is of the current layout, the tensors have the original one's "
                        "names"));
}

TEST(CheckTensors, ATiedHeadMayBeStoredAgainIfItIsTheSame) {
  const TempFolder folder;
  for (const char* model : {"native-a", "original-scalars"}) {
    const TensorFolder in = TensorFolder::open(fixture(model));
    Put head = copy_of(in, "model.embed_tokens.weight", "lm_head.weight");
    write_changed(fixture(model), folder / "same", {}, {head});
    EXPECT_EQ(check_error(folder / "same"), "") << model;
    head.data.back() += 1;
    write_changed(fixture(model), folder / "other", {}, {head});
    EXPECT_THAT(check_error(folder / "other"),
                HasSubstr("lm_head.weight: wanted the bytes of model.embed_tokens.weight"));
    head.shape = {320 * 32, in.get("model.embed_tokens.weight").columns() / 32};
    write_changed(fixture(model), folder / "shape", {}, {head});
    EXPECT_THAT(check_error(folder / "shape"), HasSubstr("lm_head.weight: wanted the bytes"));
  }
}

TEST(CheckTensors, CodesNeedTheirScalesAndTheRightType) {
  const TempFolder folder;
  Context ctx;
  convert_model(ctx, fixture("native-a"), folder / "int8", {{Layout::current, 8}}, nullptr);
  EXPECT_EQ(check_error(folder / "int8"), "");
  const std::string q = "model.layers.1.self_attn.qkv_proj.q_proj.weight";
  write_changed(folder / "int8", folder / "bare", {q + ".scales"}, {});
  EXPECT_THAT(check_error(folder / "bare"), HasSubstr("missing: " + q + ".scales [64, 2]"));
  write_changed(folder / "int8", folder / "wide", {q + ".scales"},
                {{q + ".scales", DType::f32, {64, 2}, std::vector<float>(128)}});
  EXPECT_THAT(check_error(folder / "wide"), HasSubstr(q + ".scales: wanted BF16, got F32"));
  write_changed(folder / "int8", folder / "nibbles", {q},
                {{q, DType::u8, {64, 32}, std::vector<float>(64 * 32 / 4)}});
  EXPECT_THAT(check_error(folder / "nibbles"), AllOf(HasSubstr(q + ": wanted I8, got U8"),
                                                     HasSubstr(q + ": wanted shape [64, 64]")));
  // Codes where the config promises floats.
  write_quickly(folder.path() / "int8" / "config.json",
                read_file(fixture("native-a") / "config.json"));
  EXPECT_THAT(check_error(folder / "int8"),
              AllOf(HasSubstr(q + ": wanted F32, BF16 or F16, got I8"),
                    HasSubstr("not part of the model: \"" + q + ".scales\"")));
}

TEST(CheckTensors, AMatrixMayStayFloatAmongCodes) {
  const TempFolder folder;
  Context ctx;
  convert_model(ctx, fixture("native-a"), folder / "int8", {{Layout::current, 8}}, nullptr);
  const std::string embeddings = "model.embed_tokens.weight";
  const TensorFolder in = TensorFolder::open(fixture("native-a"));
  write_changed(folder / "int8", folder / "mixed", {embeddings, embeddings + ".scales"},
                {copy_of(in, embeddings, embeddings)});
  EXPECT_EQ(check_error(folder / "mixed"), "");
}

TEST(CheckTensors, AConfigThatPromisesMoreCostsNothing) {
  const TempFolder folder;
  write_changed(fixture("original-scalars"), folder / "m", {}, {});
  Json json = parse_json_file(fixture("original-scalars") / "config.json");
  json["num_experts"] = 4096;
  json["ffn_hidden_size"] = 1 << 20;
  write_quickly(folder.path() / "m" / "config.json", json_text(json));
  const std::string error = check_error(folder / "m");
  EXPECT_THAT(error, HasSubstr("wanted shape [1048576, 64], got [96, 64]"));
  EXPECT_THAT(error, HasSubstr(" more"));
}

TEST(TensorFolder, ATensorInTwoShardsIsRefused) {
  const TempFolder folder;
  std::vector<float> data(4);
  for (const char* shard : {"one", "two"}) {
    SafetensorsWriter writer(folder / shard, {{"a", DType::f32, {4}}});
    writer.add("a", Tensor(data.data(), DType::f32, {4}));
    writer.finish();
  }
  SafetensorsWriter writer(folder / "three", {{"b", DType::f32, {4}}});
  writer.add("b", Tensor(data.data(), DType::f32, {4}));
  writer.finish();
  write_quickly(folder / "model.safetensors.index.json",
                R"({"weight_map": {"a": "one", "b": "three"}})");
  EXPECT_EQ(error_of([&] { TensorFolder::open(folder.path()); }), "");  // two is not named
  make_folder(folder / "both");
  for (const char* shard : {"one", "two"})
    fs::copy_file(folder / shard, folder.path() / "both" / shard);
  SafetensorsWriter more(folder.path() / "both" / "two",
                         {{"a", DType::f32, {4}}, {"b", DType::f32, {4}}});
  more.add("a", Tensor(data.data(), DType::f32, {4}));
  more.add("b", Tensor(data.data(), DType::f32, {4}));
  more.finish();
  write_quickly(folder.path() / "both" / "model.safetensors.index.json",
                R"({"weight_map": {"a": "one", "b": "two"}})");
  EXPECT_THAT(error_of([&] { TensorFolder::open(folder / "both"); }),
              HasSubstr("weight_map.a: wanted it in one shard, got it in one and in two"));
}

}  // namespace
}  // namespace zaya
