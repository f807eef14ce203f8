// An opened model folder, for one rank: everything that is known before the weights are read, which
// Describe and the memory plan need, and a function that reads the weights.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "shard/cache/paged/kv_type.h"
#include "shard/model/model_spec.h"
#include "shard/model/pooling.h"
#include "shard/model/program.h"
#include "shard/model/rank_share.h"
#include "shard/tensor_view.h"
#include "shard/weights/checkpoint.h"
#include "shard/weights/loader.h"
#include "shard/weights/quantization.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

struct ModelOptions {
  std::string folder;
  std::optional<DType>
      dtype;  // empty = auto: the checkpoint's type, but float32 for float16 on a CPU
  Device device;
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  Quantization quantization = Quantization::kNone;
  KvType kv_type = KvType::kAuto;
  std::optional<Task> task;            // --task; empty = what the model was made for
  std::optional<PoolingKind> pooling;  // --pooling; empty = what the folder says
};

struct Model {
  ModelSpec spec;
  DType dtype = DType::kFloat32;  // in which the model computes
  Quantization quantization = Quantization::kNone;
  KvType kv_type = KvType::kAuto;  // kAuto also for the name of the model's own type
  std::optional<Pooling> pooling;  // unless the task is kGenerate
  RankShare part;
  Program program;
  WeightPlan weight_plan;        // of this rank
  std::uint64_t parameters = 0;  // of the whole model; tied weights count once
  QuantizedCount quantized;      // of the whole model
  std::string fingerprint;       // of config, dtype and tensor table: equal on all ranks
  Checkpoint checkpoint;

  // Reads config.json, generation_config.json and the headers, and checks them against each other.
  // Errors are one line: file, key or tensor, value, limit.
  static absl::StatusOr<Model> Open(const ModelOptions& options);

  // Bytes of the weights that Load returns. A backend that packs weights reports its own size.
  std::uint64_t WeightBytes() const { return weight_plan.Bytes(dtype); }

  absl::StatusOr<LoadedWeights> Load(const LoadProgress& progress) const {
    return LoadWeights(checkpoint, weight_plan, dtype, progress);
  }
};

}  // namespace penstock::shard
