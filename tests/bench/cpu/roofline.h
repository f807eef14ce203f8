// The least time of a step: the sum of its phases, each bound by reading its bytes or by its
// operations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shard/model/model.h"

namespace penstock::shard {

struct StepShape {
  std::uint32_t rows = 1;         // sequences that decode, or tokens of one prompt
  std::uint32_t context = 0;      // positions that each decoding row sees
  bool prompt = false;            // rows are positions 0 … rows - 1 of one sequence
  double weight_bytes = 2.0;      // of an element of a matrix
  double kv_bytes_per_token = 0;  // all layers
};

struct Phase {
  std::string name;
  double bytes = 0;
  double operations = 0;
};

// Matrix products, experts, gated delta nets and attention in order. Embedding, norms and sampling
// are not counted.
std::vector<Phase> PhasesOf(const Model& model, const StepShape& shape);

double RooflineSeconds(const std::vector<Phase>& phases, double bytes_per_second,
                       double operations_per_second);

}  // namespace penstock::shard
