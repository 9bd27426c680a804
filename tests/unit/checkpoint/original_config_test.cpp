#include "checkpoint/original_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/hf_config.h"
#include "checkpoint/model_file.h"
#include "support/temp_folder.h"

namespace zaya {
namespace {

using ::testing::HasSubstr;

Json fixture(const std::string& model) {
  return parse_json_file(std::filesystem::path(ZAYA_SOURCE_DIR) / "tests/fixtures" / model /
                         "config.json");
}

ModelConfig read(const Json& json) { return original_config_from_json(json, "config.json"); }

std::string refusal(const Json& json) {
  return error_of([&] { model_file_from_json(json, "config.json"); });
}

// What a config means, in one dialect.
Json meaning(const ModelConfig& c) { return hf_config_to_json(c); }

TEST(OriginalConfig, ListsGiveTheGeometryOfTheLayersOfAKind) {
  const ModelConfig c = read(fixture("original-layout"));
  EXPECT_EQ(c.num_hidden_layers, 2);
  EXPECT_EQ(c.num_attention_heads, 4);  // of 8: twice the query heads
  EXPECT_EQ(c.num_key_value_heads, 2);
  EXPECT_EQ(c.head_dim, 16);  // 128 / 8
  EXPECT_EQ(c.num_experts, 4);
  EXPECT_EQ(c.moe_intermediate_size, 48);  // of 96: gate and up
  EXPECT_EQ(c.router_hidden_size, 24);
  EXPECT_EQ(c.skip, Skip::pass);
  EXPECT_EQ(c.rope_theta, 5e6);
}

TEST(OriginalConfig, ScalarsCountQueryHeadsPlainly) {
  const ModelConfig c = read(fixture("original-scalars"));
  EXPECT_EQ(c.num_hidden_layers, 3);
  EXPECT_EQ(c.num_attention_heads, 6);
  EXPECT_EQ(c.head_dim, 16);
  EXPECT_EQ(c.cca_time0, 3);
  EXPECT_EQ(c.rope_theta_sliding, 10000);
}

TEST(OriginalConfig, AWindowIsOneMoreThanSwaLayersSays) {
  const ModelConfig c = read(fixture("original-scalars"));
  EXPECT_EQ(c.window(0), 6);
  EXPECT_EQ(c.window(1), 0);
  EXPECT_EQ(c.window(2), 6);
}

TEST(OriginalConfig, WhatIsWrittenMeansTheSame) {
  for (const char* model : {"original-layout", "original-scalars"}) {
    const ModelConfig c = read(fixture(model));
    EXPECT_EQ(meaning(read(original_config_to_json(c))), meaning(c)) << model;
  }
  for (const char* model : {"native-a", "native-sliding", "native-packed"}) {
    const ModelConfig c = hf_config_from_json(fixture(model), "config.json");
    EXPECT_EQ(meaning(read(original_config_to_json(c))), meaning(c)) << model;
  }
}

TEST(OriginalConfig, AWindowOfOneTokenHasNoNumberThere) {
  ModelConfig c = read(fixture("original-scalars"));
  c.sliding_window = 1;
  EXPECT_THAT(error_of([&] { original_config_to_json(c); }), HasSubstr("sliding_window"));
}

TEST(OriginalConfig, RotaryValuesMayHaveMovedToRopeParameters) {
  Json json = fixture("original-layout");
  json.erase("rope_theta");
  EXPECT_THAT(refusal(json), HasSubstr("rope_theta"));
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 77.0}};
  EXPECT_EQ(read(json).rope_theta, 77.0);
  json["rope_parameters"] = {{"rope_type", "default"}, {"hybrid", {{"rope_theta", 78.0}}}};
  EXPECT_EQ(read(json).rope_theta, 78.0);
  json["rope_theta"] = 79.0;
  json["rope_parameters"] = {{"rope_type", "default"}};
  EXPECT_EQ(read(json).rope_theta, 79.0);
  json["rope_parameters"]["rope_theta"] = 80.0;
  EXPECT_THAT(refusal(json), HasSubstr("rope_parameters.rope_theta: wanted 79 as at the top"));
}

TEST(OriginalConfig, ListsRefuseWhatTheyCannotMean) {
  const auto refused = [](const char* key, const Json& value, const char* why) {
    Json json = fixture("original-layout");
    json[key] = value;
    EXPECT_THAT(refusal(json), HasSubstr(std::string("config.json: ") + why)) << key;
  };
  refused("zaya_layers", {"a", 4, "a"}, "zaya_layers: wanted 4 entries");
  refused("zaya_layers", {"a", 4, "a", 4, "a", 4}, "zaya_layers: wanted 4 entries");
  refused("zaya_layers", {"a", 4, "a", 8}, "zaya_layers[3]: wanted 4 as in layer 1");
  refused("zaya_layers", {"a", 4, 4, "a"}, "zaya_layers[2]: wanted 0 in an attention layer");
  refused("zaya_layers", {"a", 4, "a", "a"}, "zaya_layers[3]: wanted an integer");
  refused("zaya_layers", {"a", -4, "a", -4}, "zaya_layers[1]: wanted an integer");
  refused("zaya_layers", {"a", 1e30, "a", 1e30}, "zaya_layers[1]: wanted an integer");
  refused("zaya_layers", {0, 4, 0, 4}, "zaya_layers[0]: wanted \"a\"");
  refused("zaya_layers", 4, "zaya_layers: wanted an array");
  refused("cca_num_q_heads", {4, 0, 8, 0}, "cca_num_q_heads[2]: wanted 4 as in layer 0");
  refused("cca_num_q_heads", {4, 4, 4, 4}, "cca_num_q_heads[1]: wanted 0 in an experts layer");
  refused("cca_num_q_heads", {4, 0, 18446744073709551615u, 0}, "cca_num_q_heads[2]: wanted");
  refused("ffn_hidden_size_list", {0, 97, 0, 97}, "ffn_hidden_size_list: wanted an even number");
  refused("zaya_mlp_expansion", {0, 24, 0}, "zaya_mlp_expansion: wanted 4 entries");
  refused("num_attention_heads", 7, "num_attention_heads: wanted a divisor of hidden_size");
  refused("num_hidden_layers", 5, "num_hidden_layers: wanted an even number");
  refused("num_hidden_layers", -4, "num_hidden_layers: wanted an integer");
  refused("num_key_value_heads", 4, "num_key_value_heads: wanted 2");
}

TEST(OriginalConfig, DialectsMayRepeatOneAnotherButNotDisagree) {
  Json json = fixture("original-layout");
  json["num_experts"] = 4;
  json["head_dim"] = 16;
  EXPECT_EQ(refusal(json), "");
  json["num_experts"] = 5;
  EXPECT_THAT(refusal(json), HasSubstr("num_experts: wanted 4, as zaya_layers says, got 5"));
  json["num_experts"] = 4;
  json["head_dim"] = 32;
  EXPECT_THAT(refusal(json), HasSubstr("head_dim: wanted 16"));
  Json scalars = fixture("original-scalars");
  scalars["cca_num_q_heads"] = {6, 0, 6, 0, 6, 0};
  EXPECT_THAT(refusal(scalars), HasSubstr("zaya_layers: wanted a list beside cca_num_q_heads"));
}

TEST(OriginalConfig, FieldsOfBothLayoutsAreRefused) {
  Json json = fixture("original-scalars");
  json["moe_intermediate_size"] = 48;
  EXPECT_THAT(refusal(json), HasSubstr("moe_intermediate_size: wanted none"));
}

TEST(OriginalConfig, WindowsRefuseWhatTheyCannotMean) {
  const auto refused = [](const char* key, const Json& value, const char* why) {
    Json json = fixture("original-scalars");
    json[key] = value;
    EXPECT_THAT(refusal(json), HasSubstr(why)) << key;
  };
  refused("swa_layers", {5, 0, 0}, "swa_layers: wanted 6 entries, one a layer");
  refused("swa_layers", {5, 5, 0, 0, 5, 0}, "swa_layers[1]: wanted 0 in an experts layer");
  refused("swa_layers", {5, 0, 7, 0, 5, 0}, "swa_layers[2]: wanted the window of the layers");
  refused("swa_layers", {-1, 0, 0, 0, 5, 0}, "swa_layers[0]: wanted an integer from 0");
  refused("swa_rotary_base", Json(), "swa_rotary_base: wanted the rotary base");
  refused("swa_rotary_base", -1.0, "rope_theta: wanted a positive number");
  refused("sliding_window", 8, "sliding_window: wanted null");
}

TEST(OriginalConfig, RefusesWhatWouldComputeAnotherModel) {
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, Json>>{{"cca", false},
                                                 {"zaya_use_mod", false},
                                                 {"zaya_use_eda", false},
                                                 {"scale_residual_merge", false},
                                                 {"gated_linear_unit", false},
                                                 {"clamp_temp", true},
                                                 {"attention_bias", true},
                                                 {"activation_func", "gelu"},
                                                 {"normalization", "LayerNorm"},
                                                 {"moe_router_topk", 2},
                                                 {"rope_scaling", {{"factor", 2}}},
                                                 {"model_type", "llama"},
                                                 {"head_dim", "16"},
                                                 {"vocab_size", 0},
                                                 {"norm_epsilon", -1.0}}) {
    Json json = fixture("original-scalars");
    json[key] = value;
    EXPECT_THAT(refusal(json), HasSubstr("config.json: ")) << key;
  }
}

TEST(ModelFile, AConfigInAnotherFormKeepsTheRestOfIt) {
  Json json = fixture("original-layout");
  json["eos_token_id"] = {1, 106};
  json["someone_elses"] = "key";
  json["auto_map"] = {{"AutoConfig", "configuration.Zaya"}};
  const ModelFile original = model_file_from_json(json, "config.json");
  const ModelFile current = model_file_from_json(config_in_form(original, {}), "current");
  EXPECT_EQ(current.form.layout, Layout::current);
  EXPECT_EQ(current.json["eos_token_id"], json["eos_token_id"]);
  EXPECT_EQ(current.json["someone_elses"], "key");
  EXPECT_EQ(current.json["dtype"], "float32");
  EXPECT_FALSE(current.json.contains("auto_map"));
  EXPECT_FALSE(current.json.contains("cca_num_q_heads"));
  const Json back = config_in_form(current, {Layout::original});
  EXPECT_EQ(meaning(read(back)), meaning(original.config));
  EXPECT_EQ(back["eos_token_id"], json["eos_token_id"]);
  EXPECT_EQ(back["fused_add_norm"], false);
}

TEST(ModelFile, QuantizationIsReadStrictly) {
  Json json = fixture("native-a");
  json["quantization_config"] = {{"quant_method", "zaya"}, {"bits", 8}, {"group_size", 32}};
  EXPECT_EQ(model_file_from_json(json, "config.json").form.bits, 8);
  for (const auto& [key, value] : std::vector<std::pair<const char*, Json>>{
           {"quant_method", "gptq"}, {"bits", 3}, {"bits", "8"}, {"group_size", 128}}) {
    Json wrong = json;
    wrong["quantization_config"][key] = value;
    EXPECT_THAT(refusal(wrong), HasSubstr(fmt::format("quantization_config.{}: wanted", key)));
  }
  Json original = fixture("original-scalars");
  original["quantization_config"] = json["quantization_config"];
  EXPECT_THAT(refusal(original), HasSubstr("quantization_config: wanted none"));
}

}  // namespace
}  // namespace zaya
