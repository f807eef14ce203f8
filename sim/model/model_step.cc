#include "sim/model/model_step.h"

#include <algorithm>
#include <utility>

#include "sim/model/output_reader.h"

namespace penstock::sim {

using scheduler::PlanOut;
using scheduler::StepInfo;

namespace {

void CompareInfo(const StepInfo& model, const StepInfo& core) {
  ExpectEqual("StepInfo.group", model.group.value(), core.group.value());
  ExpectEqual("StepInfo.step", model.step.value(), core.step.value());
  ExpectEqual("StepInfo.decode_rows", model.decode_rows, core.decode_rows);
  ExpectEqual("StepInfo.prefill_tokens", model.prefill_tokens, core.prefill_tokens);
  ExpectEqual("StepInfo.sequences", model.sequences, core.sequences);
  ExpectEqual("StepInfo.waiting", model.waiting, core.waiting);
  ExpectEqual("StepInfo.blocks_free", model.blocks_free, core.blocks_free);
  ExpectEqual("StepInfo.blocks_used", model.blocks_used, core.blocks_used);
  ExpectEqual("StepInfo.blocks_cached", model.blocks_cached, core.blocks_cached);
  ExpectEqual("StepInfo.blocks_retiring", model.blocks_retiring, core.blocks_retiring);
  ExpectEqual("StepInfo.window_blocks_free", model.window_blocks_free, core.window_blocks_free);
  ExpectEqual("StepInfo.window_blocks_used", model.window_blocks_used, core.window_blocks_used);
  ExpectEqual("StepInfo.window_blocks_cached", model.window_blocks_cached,
              core.window_blocks_cached);
  ExpectEqual("StepInfo.window_blocks_retiring", model.window_blocks_retiring,
              core.window_blocks_retiring);
  ExpectEqual("StepInfo.predicted", static_cast<std::uint64_t>(model.predicted.count()),
              static_cast<std::uint64_t>(core.predicted.count()));
  ExpectEqual("StepInfo.decode_parts", model.decode_parts, core.decode_parts);
  ExpectEqual("StepInfo.decode_cells", model.decode_cells, core.decode_cells);
  ExpectEqual("StepInfo.decode_tokens", model.decode_tokens, core.decode_tokens);
  ExpectEqual("StepInfo.resplit", model.resplit, core.resplit);
  ExpectEqual("StepInfo.prefix.looked_up_tokens", model.prefix.looked_up_tokens,
              core.prefix.looked_up_tokens);
  ExpectEqual("StepInfo.prefix.hit_tokens", model.prefix.hit_tokens, core.prefix.hit_tokens);
  ExpectEqual("StepInfo.prefix.evicted_blocks", model.prefix.evicted_blocks,
              core.prefix.evicted_blocks);
}

}  // namespace

SequenceId PlanComparison::OnSlot(SlotId slot) const {
  const auto it = slots_.find(slot);
  return it == slots_.end() ? SequenceId(0) : it->second;
}

void PlanComparison::Compare(const ModelStep& step, Epoch epoch, const PlanOut& out,
                             const StepInfo& info) {
  const StepPlan& plan = out.plan;
  ExpectEqual("the epoch of a plan", epoch.value(), plan.epoch.value());
  ExpectEqual("the step of a plan", step.step.value(), plan.step.value());
  CompareEnds(step, plan);
  CompareStarts(step, out);
  CompareBlocks(step, plan);
  CompareSegments(step, plan);
  CompareGroups(step, plan);
  CompareInfo(step.info, info);
}

void PlanComparison::CompareEnds(const ModelStep& step, const StepPlan& plan) {
  ExpectEqual("slots that end", step.ends.size(), plan.ends.size());
  std::vector<SequenceId> ends;
  for (const SlotId slot : plan.ends) {
    ends.push_back(OnSlot(slot));
    slots_.erase(slot);
  }
  std::ranges::sort(ends);
  std::vector<SequenceId> expected = step.ends;
  std::ranges::sort(expected);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ExpectEqual("a sequence that ends", expected[i].value(), ends[i].value());
  }
}

void PlanComparison::CompareStarts(const ModelStep& step, const PlanOut& out) {
  ExpectEqual("starts", step.starts.size(), out.plan.starts.size());
  ExpectEqual("requests that start", step.starts.size(), out.requests.size());
  for (std::size_t i = 0; i < step.starts.size(); ++i) {
    const SequenceStart& start = out.plan.starts[i];
    ExpectEqual("a sequence that starts", step.starts[i].sequence.value(), start.sequence.value());
    ExpectEqual("a request that starts", step.starts[i].request.value(), out.requests[i].value());
    ExpectEqual("cached_length", step.starts[i].cached, start.cached_length);
    slots_[start.slot] = start.sequence;
  }
}

void PlanComparison::CompareBlocks(const ModelStep& step, const StepPlan& plan) {
  ExpectEqual("block operations", step.blocks.size(), plan.block_ops.size());
  for (std::size_t i = 0; i < step.blocks.size(); ++i) {
    const ModelStep::BlockChange& model = step.blocks[i];
    const BlockOp& op = plan.block_ops[i];
    ExpectEqual("the sequence of a block", model.sequence.value(), OnSlot(op.slot).value());
    ExpectEqual("an operation of a state", model.kind.has_value(), IsOfState(op.kind));
    if (model.kind) {
      CompareState(model, op);
      continue;
    }
    ExpectEqual("a copied block", model.copy_of.has_value(), op.kind == BlockOp::Kind::kCopy);
    ExpectEqual("the KV group of a block", model.in_window, op.kv_group);
    BlockNames& names = names_[op.kv_group];
    if (model.drawn) names[model.block] = op.dst;
    const BlockId name = model.none ? kNoBlock : names[model.block];
    ExpectEqual("the number of a block", name.value(), op.dst.value());
    if (model.copy_of) ExpectEqual("a source", names[*model.copy_of].value(), op.src.value());
  }
}

// The core chose the number of a snapshot when it was saved.
void PlanComparison::CompareState(const ModelStep::BlockChange& model, const BlockOp& op) {
  const bool saves = *model.kind == BlockOp::Kind::kSaveState;
  ExpectEqual("a saved state", saves, op.kind == BlockOp::Kind::kSaveState);
  if (saves) snapshots_[model.snapshot] = op.dst;
  ExpectEqual("the number of a snapshot", snapshots_[model.snapshot].value(),
              (saves ? op.dst : op.src).value());
}

void PlanComparison::CompareSegments(const ModelStep& step, const StepPlan& plan) const {
  ExpectEqual("segments of a step", step.segments.size(), plan.segments.size());
  for (std::size_t i = 0; i < step.segments.size(); ++i) {
    const ModelStep::Rows& model = step.segments[i];
    const Segment& segment = plan.segments[i];
    ExpectEqual("the sequence of a segment", model.sequence.value(), OnSlot(segment.slot).value());
    ExpectEqual("a prompt segment", model.prompt, segment.kind == Segment::Kind::kPrompt);
    ExpectEqual("rows of a segment", model.count, segment.Rows());
    if (!model.prompt) continue;
    ExpectEqual("the begin of a chunk", model.first, segment.first);
    ExpectEqual("logits of a chunk", static_cast<std::uint64_t>(model.logits),
                static_cast<std::uint64_t>(segment.logits));
  }
}

void PlanComparison::CompareGroups(const ModelStep& step, const StepPlan& plan) const {
  ExpectEqual("sub-batches", step.groups.size(), plan.groups.size());
  for (std::size_t i = 0; i < step.groups.size(); ++i) {
    const SegmentGroup& group = plan.groups[i];
    if (step.groups[i].segments != group.segments) throw Difference{"another sub-batch"};
    std::vector<SequenceId> rows;
    for (const SlotId slot : group.rows) rows.push_back(OnSlot(slot));
    if (step.groups[i].rows != rows) throw Difference{"a sub-batch has other rows"};
    ExpectEqual("the width of a sub-batch", step.groups[i].width, group.width);
  }
}

}  // namespace penstock::sim
