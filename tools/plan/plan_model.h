// The model of a plan: sizes for step times and memory.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "scheduler/cost/machine_model.h"

namespace penstock::plan {

struct PlanModel {
  std::string name;     // as given
  bool folder = false;  // not a named shape
  scheduler::ModelShape shape;
  bool tied_head = false;
  std::uint32_t max_position = 0;

  // Of the whole model.
  double WeightBytes(bool fp8) const;
  // Of one rank of `ranks`, in 16 bits.
  double KvBytesPerToken(int ranks) const;
  // Whether ranks can divide the heads.
  bool Divides(int ranks) const;
};

// A folder with config.json, or "llama-3-8b" or "llama-3-70b". The error names file, key, value and
// limit. Models with experts or recurrent layers have no closed form and are refused.
absl::StatusOr<PlanModel> ReadPlanModel(const std::string& text);

}  // namespace penstock::plan
