#include "plan/machine.h"

#include <gtest/gtest.h>

#include "support/tiny_model.h"

namespace zaya {
namespace {

TEST(Machine, ProductsHaveTheModelsShapes) {
  const ModelConfig c = test::tiny_config();  // D 32, q 32, k 16, E 4, I 24, V 97
  const std::vector<ProductShape> shapes = product_shapes(c, 64);
  ASSERT_EQ(shapes.size(), 6u);
  const auto expect = [&](size_t i, int64_t m, int64_t n, int64_t k) {
    EXPECT_EQ(shapes[i].m, m) << shapes[i].name;
    EXPECT_EQ(shapes[i].n, n) << shapes[i].name;
    EXPECT_EQ(shapes[i].k, k) << shapes[i].name;
  };
  expect(0, 64, 32, 32);
  expect(1, 64, 16, 32);
  expect(2, 64, 32, 32);
  expect(3, 16, 48, 32);  // an even share of the tokens
  expect(4, 16, 32, 24);
  expect(5, 64, 97, 32);
}

TEST(Machine, AnExpertGetsATokenAtLeast) {
  EXPECT_EQ(product_shapes(test::tiny_config(), 1)[3].m, 1);
}

TEST(Machine, EveryDirectionOfAProductIsMeasured) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const ProductSpeed speed = measure_product({"tiny", 5, 7, 9}, dtype);
    EXPECT_GT(speed.forward, 0);
    EXPECT_GT(speed.input_gradient, 0);
    EXPECT_GT(speed.weight_gradient, 0);
  }
}

}  // namespace
}  // namespace zaya
