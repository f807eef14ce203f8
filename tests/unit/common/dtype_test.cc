#include "common/dtype.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(DTypeTest, KnowsTheNamesOfOptionsConfigsAndSafetensors) {
  for (const char* name : {"float32", "fp32", "f32", "F32", "float", "torch.float32"}) {
    EXPECT_EQ(ParseDType(name), DType::kFloat32) << name;
  }
  for (const char* name : {"bfloat16", "bf16", "BF16", "torch.bfloat16"}) {
    EXPECT_EQ(ParseDType(name), DType::kBFloat16) << name;
  }
  for (const char* name : {"float16", "fp16", "f16", "F16", "half"}) {
    EXPECT_EQ(ParseDType(name), DType::kFloat16) << name;
  }
  EXPECT_EQ(ParseDType("int8"), std::nullopt);
  EXPECT_EQ(ParseDType(""), std::nullopt);
}

TEST(DTypeTest, NamesReadBackAsTheSameType) {
  for (DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    EXPECT_EQ(ParseDType(DTypeName(dtype)), dtype);
  }
  EXPECT_EQ(DTypeBytes(DType::kFloat32), 4u);
  EXPECT_EQ(DTypeBytes(DType::kBFloat16), 2u);
}

}  // namespace
}  // namespace penstock
