// Step times of known machines in closed form, for simulated shards: seven terms whose constants
// were fitted to published kernel measurements (docs/scheduling.md, "Step times").
//
//   step = linear + prefill attention + decode attention + elementwise + all-reduce + head +
//   sampling
//
// Two variants: `rows` has a fitted line for each (machine, model, tensor parallelism); `generic`
// computes the linear term from the peak rates of the machine and exists for every shape.
//
// Reproducible: see exact_math.h. Values are constant.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/time.h"
#include "scheduler/step/step_shape.h"

namespace penstock::scheduler {

// Milliseconds.
struct StepTerms {
  double linear = 0;
  double prefill = 0;
  double decode = 0;
  double elementwise = 0;
  double all_reduce = 0;
  double head = 0;
  double sampling = 0;

  double Sum() const {
    return linear + prefill + decode + elementwise + all_reduce + head + sampling;
  }
};

// Sizes of a decoder with gated MLPs and one head.
struct ModelShape {
  double layers = 0;
  double hidden = 0;
  double query_heads = 0;
  double kv_heads = 0;
  double head_size = 0;
  double ffn = 0;
  double vocabulary = 0;

  // Of the linear layers, without embedding and head.
  double LinearParameters() const;
};

class MachineModel {
 public:
  // "h100-llama-3-8b-tp1": machine (a100, h100, h200), model (llama-3-8b, llama-3-70b), tensor
  // parallelism (1, 2, 4, 8), then "-fp8" for 8-bit weights and "-generic" for the generic variant.
  // nullopt if the name is not one of Names().
  static std::optional<MachineModel> Find(std::string_view name);
  static std::vector<std::string> Names();

  // The generic variant for any shape. nullopt if `machine` is not one of Machines(), or has no
  // arithmetic for 8-bit weights. The all-reduce term was measured for 2, 4 and 8 ranks; other
  // numbers take that of 8.
  static std::optional<MachineModel> Generic(std::string_view machine, const ModelShape& shape,
                                             int ranks, bool fp8);
  static std::vector<std::string_view> Machines();
  // "llama-3-8b" or "llama-3-70b".
  static std::optional<ModelShape> ShapeNamed(std::string_view name);

  StepTerms Terms(const StepShape& step) const;
  // The sum of the terms, to the nanosecond. An empty step takes no time.
  Duration StepTime(const StepShape& step) const;

 private:
  struct Machine;
  struct Constants;
  struct LinearRow {
    double stream_ms = 0;  // reading all weights once
    double token_us = 0;   // arithmetic of one token
    int sharpness2 = 7;    // twice the exponent of SmoothMaximum
  };
  struct Entry;

  MachineModel(const Machine& machine, const ModelShape& shape, LinearRow row, int ranks)
      : machine_(&machine), shape_(shape), row_(row), ranks_(ranks) {}
  static LinearRow GenericRow(const Machine& machine, const ModelShape& shape, int ranks, bool fp8);
  static const std::vector<Entry>& Entries();

  double KvHeads() const;
  double AllReduce(double tokens) const;
  double Head(double sequences) const;

  const Machine* machine_;  // constants
  ModelShape shape_;
  LinearRow row_;
  double ranks_;
};

}  // namespace penstock::scheduler
