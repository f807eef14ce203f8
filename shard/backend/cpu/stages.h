// A Program as the CPU backend runs it: neighbouring operations are fused into stages, and each
// stage has the weights that it needs. All threads meet at a barrier between two stages.
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
  kPositions,   // hidden += rows of a table of learned positions
  kNorm,        // hidden += add; out = norm(hidden)
  kSelectNorm,  // the same for the rows whose logits are wanted, packed together
  kLinear,      // GEMM with its epilogue
  kHeads,       // norms and rotates queries and keys, writes K and V
  kAttention,
  kExperts,
  kGateRows,  // out *= sigmoid(in)
  kLatentWrite,
  kHeadLinear,
  kGroupNorm,
  kMultiply,
  kScale,
  kSquares,
  kWidthNorm,
  kClamp,
  kXielu,
  kGate,  // the same, column by column
  kDeltaNet,
  kShortConv,
  kAllReduce,
};

struct Stage {
  StageKind kind = StageKind::kNorm;
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
  Buffer add = Buffer::kNone;
  Epilogue epilogue = Epilogue::kStore;
  Activation activation = Activation::kSilu;  // of the epilogue
  WeightIndex table = kNoWeight;              // kEmbed, kPositions
  float table_scale = 1.0f;                   // kEmbed
  std::uint32_t table_offset = 0;             // kPositions
  std::uint32_t table_parts = 0;              // the same
  float add_scale = 1.0f;                     // of `add`
  NormKind norm_kind = NormKind::kRms;        // of norms
  const float* norm_weight = nullptr;         // the same; the number of kScale
  const float* norm_bias = nullptr;           // of LayerNorm
  float eps = 0;                              // of norms
  WeightIndex weight = kNoWeight;             // kLinear
  const PackedMatrix* matrix = nullptr;       // the same
  const float* bias = nullptr;                // the same, or null
  const float* query_weight = nullptr;        // kHeads, or null; kWidthNorm
  const float* key_weight = nullptr;          // the same
  const float* query_bias = nullptr;          // kHeads, or null
  const float* key_bias = nullptr;            // the same
  const HeadNormOp* head_norm = nullptr;      // the same; of the program
  const RopeKvWriteOp* heads = nullptr;       // kHeads; of the program
  const AttentionOp* attention = nullptr;     // kAttention; of the program
  const ExpertsOp* experts = nullptr;         // kExperts; of the program
  const float* sinks = nullptr;               // kAttention, or null
  const LatentWriteOp* latent = nullptr;      // kLatentWrite; of the program
  const HeadLinearOp* head_linear = nullptr;  // kHeadLinear; of the program
  const GroupNormOp* groups = nullptr;        // kGroupNorm; of the program
  const MultiplyOp* multiply = nullptr;       // kMultiply; of the program
  const SquaresOp* squares = nullptr;         // kSquares; of the program
  const WidthNormOp* width_norm = nullptr;    // kWidthNorm; of the program
  const ClampOp* clamp = nullptr;             // kClamp; of the program
  const XieluOp* xielu = nullptr;             // kXielu; of the program
  const float* positive = nullptr;            // kXielu
  const float* negative = nullptr;            // the same
  const GateRowsOp* gate_rows = nullptr;      // kGateRows; of the program
  const GateOp* gate = nullptr;               // kGate; of the program
  const DeltaNetOp* delta = nullptr;          // kDeltaNet; of the program
  const ShortConvOp* short_conv = nullptr;    // kShortConv; of the program
  // Set for a norm whose result only the next stage reads, and for that stage. If rows are few,
  // every thread computes the norm for itself, and the two need no barrier between them.
  bool private_rows = false;
};

struct Stages {
  std::vector<Stage> body;
  Stage head;            // the GEMM that gives logits
  ScaleLogitsOp logits;  // what follows it
};

// Returns Unimplemented with the name of an operation that the backend has no kernel for, by itself
// or between its neighbours.
absl::Status CheckOperations(const Program& program);

// The program must have passed CheckOperations. Pointers go into `weights`.
Stages BuildStages(const Program& program, const WeightStore& weights);

}  // namespace penstock::shard::cpu
