#include "eval/parity.h"

#include <gtest/gtest.h>

#include "checkpoint/hf_model.h"

namespace zaya {
namespace {

const fs::path kModel = fs::path(ZAYA_SOURCE_DIR) / "tests/fixtures/native-packed";

ParityReport report_with(const std::function<void(Zaya&)>& change) {
  Context ctx;
  Zaya model = load_model(ctx, kModel, DType::f32, Gradients::allocate);
  change(model);
  return check_parity(ctx, model, SafetensorsFile::open(kModel / "reference.safetensors"));
}

TEST(Parity, PassesOnTheModelTheReferenceWasMadeFrom) {
  EXPECT_TRUE(report_with([](Zaya&) {}).passed());
}

TEST(Parity, ComparesEveryTensorOfTheReference) {
  const ParityReport report = report_with([](Zaya&) {});
  const SafetensorsFile reference = SafetensorsFile::open(kModel / "reference.safetensors");
  // All but the inputs (input_ids, labels, ...), and beside them both ways through the caches.
  EXPECT_EQ(report.rows.size(), reference.names().size() - 3 + 2);
}

TEST(Parity, SeesOneChangedWeight) {
  const ParityReport report = report_with([](Zaya& model) {
    model.parameters().find("model.layers.0.self_attn.qk_norm.temp").weight.as<float>()[0] *= 1.01f;
  });
  EXPECT_FALSE(report.passed());
  EXPECT_GT(report.worst().error, report.worst().tolerance);
}

TEST(Parity, ARowThatIsNotANumberFails) {
  EXPECT_FALSE((ParityRow{"x", {1}, NAN, 1e-4, ""}).passed());
}

TEST(Parity, RefusesAReferenceOfAnotherModel) {
  Context ctx;
  Zaya model = load_model(ctx, kModel, DType::f32, Gradients::allocate);
  const fs::path other = kModel.parent_path() / "native-a/reference.safetensors";
  EXPECT_THROW(check_parity(ctx, model, SafetensorsFile::open(other)), Error);
}

}  // namespace
}  // namespace zaya
