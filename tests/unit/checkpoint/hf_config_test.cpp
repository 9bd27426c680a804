#include "checkpoint/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace zaya {
namespace {

using ::testing::HasSubstr;

Json fixture(const std::string& model) {
  return parse_json_file(std::filesystem::path(ZAYA_SOURCE_DIR) / "tests/fixtures" / model /
                         "config.json");
}

std::string refusal(const Json& json) {
  return error_of([&] { hf_config_from_json(json, "config.json"); });
}

TEST(HfConfig, WhatIsWrittenReadsBackTheSame) {
  const ModelConfig c = hf_config_from_json(fixture("native-sliding"), "config.json");
  const Json written = hf_config_to_json(c, 2, 1, "float32");
  EXPECT_EQ(hf_config_to_json(hf_config_from_json(written, "again"), 2, 1, "float32"), written);
  EXPECT_EQ(c.sliding_window, 8);
  EXPECT_EQ(c.window(0), 8);
  EXPECT_EQ(c.window(1), 0);
  EXPECT_FALSE(c.tie_word_embeddings);
}

TEST(HfConfig, RotaryValuesMayStandFlatOrAtTheTop) {
  Json flat = fixture("native-a"), top = fixture("native-a");
  flat["rope_parameters"] = {{"rope_theta", 77.0}, {"partial_rotary_factor", 0.25}};
  top.erase("rope_parameters");
  top["rope_theta"] = 77.0;
  top["partial_rotary_factor"] = 0.25;
  for (const Json& json : {flat, top}) {
    const ModelConfig c = hf_config_from_json(json, "config.json");
    EXPECT_EQ(c.rope_theta, 77.0);
    EXPECT_EQ(c.rotary_channels(), 4);
  }
}

TEST(HfConfig, RotaryValuesAreNeverGuessed) {
  Json json = fixture("native-a");
  json["rope_parameters"]["hybrid"].erase("rope_theta");
  EXPECT_THAT(refusal(json), HasSubstr("rope_theta"));
  json["rope_parameters"] = Json::object();
  EXPECT_THAT(refusal(json), HasSubstr("hybrid"));
  json.erase("rope_parameters");
  EXPECT_THAT(refusal(json), HasSubstr("rope_theta"));
}

TEST(HfConfig, AnUnusedLayerTypeMayBeAnything) {
  Json json = fixture("native-a");
  json["rope_parameters"].erase("hybrid_sliding");
  EXPECT_EQ(refusal(json), "");
  json["rope_parameters"]["hybrid_sliding"] = {{"rope_theta", 5.0}, {"partial_rotary_factor", 1.0}};
  EXPECT_EQ(refusal(json), "");
}

TEST(HfConfig, RefusesWhatWouldComputeAnotherModel) {
  const auto refused = [](const char* key, const Json& value, const char* why) {
    Json json = fixture("native-a");
    json[key] = value;
    EXPECT_THAT(refusal(json), HasSubstr(why)) << key;
  };
  refused("rope_scaling", {{"rope_type", "yarn"}}, "rope_scaling: wanted null or false");
  refused("hidden_act", "gelu", "hidden_act");
  refused("num_experts_per_tok", 2, "num_experts_per_tok");
  refused("attention_bias", true, "attention_bias");
  refused("num_hidden_layers", 2, "layer_types");
  refused("head_dim", "16", "head_dim");
  refused("zaya_skip", "sometimes", "zaya_skip: wanted \"zero\" or \"pass\"");
  Json json = fixture("native-sliding");
  json.erase("layer_types");
  EXPECT_THAT(refusal(json), HasSubstr("layer_types"));
}

TEST(HfConfig, ASkipSlotThatPassesIsKept) {
  ModelConfig c = hf_config_from_json(fixture("native-a"), "config.json");
  EXPECT_EQ(c.skip, Skip::zero);
  EXPECT_FALSE(hf_config_to_json(c).contains("zaya_skip"));
  c.skip = Skip::pass;
  EXPECT_EQ(hf_config_from_json(hf_config_to_json(c), "again").skip, Skip::pass);
}

TEST(HfConfig, AnOddNumberOfRotatingChannelsIsRefused) {
  Json json = fixture("native-a");
  json["rope_parameters"]["hybrid"]["partial_rotary_factor"] = 0.2;  // 3 of 16
  EXPECT_THAT(refusal(json), HasSubstr("even number"));
}

TEST(HfConfig, RopeScalingFalseIsAccepted) {
  Json json = fixture("native-a");
  json["rope_scaling"] = false;
  EXPECT_EQ(refusal(json), "");
}

}  // namespace
}  // namespace zaya
