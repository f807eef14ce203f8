// Writes checkpoints with tensors of any type, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shard/weights/checkpoint.h"
#include "shard/weights/weight_plan.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {

struct Stored {
  std::string name;
  std::string type;
  std::string shape;  // "[2, 3]"
  std::string bytes;
};

std::string Bytes(const std::vector<int>& values);
std::string Floats(const std::vector<float>& values);
std::string Halves(const std::vector<float>& values);  // F16
std::string Words(const std::vector<std::uint32_t>& values);

// Writes model.safetensors and opens the folder.
Checkpoint OpenStored(const TempFolder& folder, const std::vector<Stored>& tensors);

// A plan with one target, which consists of `part`. `quantization`: the object in config.json; "":
// none.
WeightPlan PlanOf(const WeightPart& part, const std::string& quantization = "");

// Whether the rows of the plan's target are given as integers of 4 bits. If so, they expand to the
// bits of float32 rows.
bool GivesInt4(const Checkpoint& checkpoint, const WeightPlan& plan);

}  // namespace penstock::shard
