#include "tests/unit/shard/weights/stored_tensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "shard/weights/config_reader.h"
#include "shard/weights/convert.h"
#include "shard/weights/formats/stored_format.h"

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

}  // namespace penstock::shard
