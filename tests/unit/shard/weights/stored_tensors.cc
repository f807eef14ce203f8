#include "tests/unit/shard/weights/stored_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "shard/weights/config_reader.h"
#include "shard/weights/convert.h"
#include "shard/weights/formats/stored_format.h"
#include "shard/weights/weight_source.h"

namespace penstock::shard {
namespace {

template <class Value>
std::string BytesOf(const std::vector<Value>& values) {
  std::string bytes(values.size() * sizeof(Value), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

std::string Bytes(const std::vector<int>& values) {
  std::string bytes;
  for (const int value : values) bytes += static_cast<char>(value);
  return bytes;
}

std::string Floats(const std::vector<float>& values) { return BytesOf(values); }

std::string Halves(const std::vector<float>& values) {
  std::string bytes(values.size() * 2, '\0');
  ConvertElements(values.data(), DType::kFloat32, bytes.data(), DType::kFloat16, values.size());
  return bytes;
}

std::string Words(const std::vector<std::uint32_t>& values) { return BytesOf(values); }

Checkpoint OpenStored(const TempFolder& folder, const std::vector<Stored>& tensors) {
  std::string header = "{", data;
  for (const Stored& tensor : tensors) {
    const std::size_t end = data.size() + tensor.bytes.size();
    header += (header.size() > 1 ? ",\"" : "\"") + tensor.name + R"(":{"dtype":")" + tensor.type +
              R"(","shape":)" + tensor.shape + R"(,"data_offsets":[)" +
              std::to_string(data.size()) + "," + std::to_string(end) + "]}";
    data += tensor.bytes;
  }
  header += "}";
  const std::uint64_t size = header.size();
  std::string file(sizeof size, '\0');
  std::memcpy(file.data(), &size, sizeof size);
  folder.Write("model.safetensors", file + header + data);
  auto checkpoint = Checkpoint::Open(folder.path());
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? *std::move(checkpoint) : Checkpoint();
}

WeightPlan PlanOf(const WeightPart& part, const std::string& quantization) {
  WeightPlan plan{{{"t", part.rows.count, part.columns.count, part.stored_shape.size() == 1, {}}}};
  plan.targets.front().parts = {part};
  if (quantization.empty()) return plan;
  const auto object = ParseConfig(quantization, "config.json");
  EXPECT_TRUE(object.ok()) << object.status();
  if (!object.ok()) return plan;
  auto format = ReadStoredFormat({*object, "quantization_config"});
  EXPECT_TRUE(format.ok()) << format.status();
  if (format.ok()) plan.format = *std::move(format);
  return plan;
}

bool GivesInt4(const Checkpoint& checkpoint, const WeightPlan& plan) {
  const CheckpointSource source(checkpoint, plan, DType::kFloat32);
  if (!source.HasInt4(0)) return false;
  const std::uint64_t rows = source.Rows(0), columns = source.Columns(0);
  const std::uint64_t floats = Int4RowFloats(columns), groups = (floats - columns) / 2;
  std::vector<float> expanded(rows * columns), given(rows * floats);
  EXPECT_TRUE(source.ReadRows(0, 0, rows, expanded.data()).ok());
  EXPECT_TRUE(source.ReadInt4Rows(0, 0, 1, given.data()).ok());
  EXPECT_TRUE(source.ReadInt4Rows(0, 1, rows - 1, given.data() + floats).ok());
  for (std::uint64_t i = 0; i < rows; ++i) {
    const float* row = given.data() + i * floats;
    for (std::uint64_t k = 0; k < columns; ++k) {
      const float scale = row[columns + k / kInt4Columns];
      const float zero = row[columns + groups + k / kInt4Columns];
      EXPECT_EQ(std::clamp(std::nearbyint(row[k]), 0.0f, 15.0f), row[k]) << i << " " << k;
      EXPECT_EQ(std::clamp(std::nearbyint(zero), 0.0f, 15.0f), zero) << i << " " << k;
      EXPECT_EQ((row[k] - zero) * scale, expanded[i * columns + k]) << i << " " << k;
    }
  }
  return true;
}

}  // namespace penstock::shard
