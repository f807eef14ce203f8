// A Program as the CPU backend runs it: neighbouring operations fused, each stage with the weights
// it needs. Between stages all threads meet.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "common/dtype.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/weights/weight_store.h"
#include "shard/model/program.h"

namespace penstock::shard::cpu {

enum class StageKind : std::uint8_t {
  kEmbed,       // hidden = embedding rows
  kNorm,        // hidden += add; out = RMSNorm(hidden)
  kSelectNorm,  // the same for the rows whose logits are wanted, packed together
  kLinear,      // product with its epilogue
  kHeads,       // norms and rotates queries and keys, writes K and V
  kAttention,
  kAllReduce,
};

struct Stage {
  StageKind kind = StageKind::kNorm;
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
  Buffer add = Buffer::kNone;
  Epilogue epilogue = Epilogue::kStore;
  const PackedMatrix* matrix = nullptr;
  const float* weight = nullptr;
  const float* weight2 = nullptr;
  std::int32_t embedding = kNoWeight;
  std::uint32_t layer = 0;
  std::uint32_t window = 0;
  // A norm whose result only the next stage reads, and that stage: for few rows every thread
  // computes it for itself, and the two need no barrier between them.
  bool private_rows = false;
};

struct Stages {
  std::vector<Stage> body;
  Stage head;  // the product that gives logits
};

// Unimplemented names the operation that the backend has no kernel for, in `program` or because of
// its neighbours.
absl::Status CheckOperations(const Program& program);

// The program must have passed CheckOperations. Pointers go into `weights`.
Stages BuildStages(const Program& program, const WeightStore& weights);

}  // namespace penstock::shard::cpu
