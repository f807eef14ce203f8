#include "shard/backend/cuda/fusion.h"

#include <variant>

namespace penstock::shard::cuda {
namespace {

// Ops that are not listed may read anything.
struct ReadsOf {
  Buffer buffer;
  bool operator()(const NormOp& op) const { return op.in == buffer || op.add == buffer; }
  bool operator()(const LinearOp& op) const {
    return op.in == buffer || (op.accumulate && op.out == buffer);
  }
  bool operator()(const HeadNormOp& op) const { return op.qkv == buffer; }
  bool operator()(const RopeKvWriteOp& op) const { return op.qkv == buffer; }
  bool operator()(const AttentionOp& op) const { return op.qkv == buffer; }
  bool operator()(const GatedActivationOp& op) const { return op.in == buffer; }
  bool operator()(const ActivationOp& op) const { return op.in == buffer; }
  bool operator()(const SelectRowsOp& op) const { return op.in == buffer; }
  bool operator()(const AllReduceOp& op) const { return op.buffer == buffer; }
  bool operator()(const AllGatherOp& op) const { return op.buffer == buffer; }
  template <class Other>
  bool operator()(const Other&) const {
    return true;
  }
};

// All of the buffer.
struct Overwrites {
  Buffer buffer;
  bool operator()(const NormOp& op) const { return op.out == buffer; }
  bool operator()(const LinearOp& op) const { return op.out == buffer && !op.accumulate; }
  bool operator()(const AttentionOp& op) const { return op.out == buffer; }
  bool operator()(const GatedActivationOp& op) const { return op.out == buffer; }
  template <class Other>
  bool operator()(const Other&) const {
    return false;
  }
};

bool IsReadIn(std::span<const Op> ops, Buffer buffer) {
  for (const Op& op : ops) {
    if (std::visit(ReadsOf{buffer}, op)) return true;
    if (std::visit(Overwrites{buffer}, op)) return false;
  }
  return false;
}

}  // namespace

const GatedActivationOp* GateToFuse(std::span<const Op> ops) {
  if (ops.size() < 2) return nullptr;
  const auto* linear = std::get_if<LinearOp>(&ops[0]);
  const auto* gate = std::get_if<GatedActivationOp>(&ops[1]);
  if (linear == nullptr || gate == nullptr || gate->in != linear->out || linear->accumulate) {
    return nullptr;
  }
  // Blocks read all of the input while others write the output.
  if (gate->activation != Activation::kSilu || gate->out == linear->in) return nullptr;
  return IsReadIn(ops.subspan(2), gate->in) ? nullptr : gate;
}

}  // namespace penstock::shard::cuda
