// The part of GroupModel that concerns rows of the padded KV layout: which stand in a part, that
// parts are as wide as their longest row and fit the store, and what admission has promised.
#include <algorithm>
#include <functional>

#include "sim/checker/group_model.h"

namespace penstock::sim {

void GroupModel::ApplyRows(const StepPlan& plan) {
  for (auto& [id, sequence] : sequences_) sequence.listed = false;
  for (const SegmentGroup& group : plan.groups) {
    if (!group.rows.empty() && capacity_.cells == 0) Complain("G1", "rows in the paged layout");
    for (const SlotId row : group.rows) {
      const auto slot = slots_.find(row);
      const auto it = slot == slots_.end() ? sequences_.end() : sequences_.find(slot->second);
      if (it == sequences_.end() || it->second.ended) {
        Complain("G8", "a row of a sequence that has ended");
        continue;
      }
      SequenceModel& sequence = it->second;
      if (sequence.listed) Complain("G1", Name(sequence.request) + " has two rows");
      sequence.listed = true;
      if (sequence.joined) continue;
      sequence.joined = plan.step;
      kv_.Retire(sequence.kv);
    }
  }
}

// Once the plan's segments are applied: lengths are those after its step.
void GroupModel::CheckRows(const StepPlan& plan, const scheduler::StepInfo& info) {
  if (capacity_.cells == 0) return;
  std::uint64_t cells = 0;
  for (const SegmentGroup& group : plan.groups) {
    std::uint64_t longest = 0;
    for (const SlotId row : group.rows) {
      const auto slot = slots_.find(row);
      const auto it = slot == slots_.end() ? sequences_.end() : sequences_.find(slot->second);
      if (it == sequences_.end()) continue;
      const SequenceModel& sequence = it->second;
      const std::uint64_t tokens = std::uint64_t{sequence.generated} + sequence.tokens_in_flight;
      longest =
          std::max(longest, sequence.prompt_length + tokens - (sequence.candidates > 0 ? 0 : 1));
    }
    if (group.width != longest) {
      Complain("G1", "a part of width " + std::to_string(group.width) + ", its longest row has " +
                         std::to_string(longest) + " positions");
    }
    cells += longest * group.rows.size();
  }
  if (cells > capacity_.cells) {
    Complain("G7", std::to_string(cells) + " cells of " + std::to_string(capacity_.cells));
  }
  if (cells != info.decode_cells) Complain("G1", "StepInfo tells another number of cells");
  for (const auto& [id, sequence] : sequences_) {
    if (sequence.joined && !sequence.ended && !sequence.listed) {
      Complain("G1", Name(sequence.request) + " loses its cells while it runs");
    }
  }
}

std::uint64_t GroupModel::BlocksOf(const RequestModel& request,
                                   const SequenceModel& sequence) const {
  const std::uint64_t tokens = capacity_.cells > 0 ? sequence.prompt_length : request.WorstCase();
  return (tokens + capacity_.block_size - 1) / capacity_.block_size;
}

// Of the best partition of everybody's worst case, by trying all cuts of the sorted lengths.
std::uint64_t GroupModel::LeastCells(const std::map<RequestId, RequestModel>& requests,
                                     const RequestModel* newcomer) const {
  std::vector<std::uint64_t> lengths;
  for (const auto& [id, request] : requests) {
    if (request.group == id_) lengths.push_back(request.WorstCase());
  }
  if (newcomer != nullptr) lengths.push_back(newcomer->WorstCase());
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  const std::size_t count = lengths.size();
  std::vector<std::uint64_t> least(count + 1, 0);  // of the first so many, into the parts so far
  for (std::size_t i = 0; i < count; ++i) least[i + 1] = lengths[0] * (i + 1);
  for (std::size_t parts = 2; parts <= std::min<std::size_t>(config_.max_splits, count); ++parts) {
    for (std::size_t end = count; end > 0; --end) {
      for (std::size_t cut = 1; cut < end; ++cut) {
        least[end] = std::min(least[end], least[cut] + lengths[cut] * (end - cut));
      }
    }
  }
  return least[count];
}

void GroupModel::CheckCellsPromised(const std::map<RequestId, RequestModel>& requests) {
  if (capacity_.cells == 0) return;
  const std::uint64_t promised = LeastCells(requests, nullptr);
  if (promised <= capacity_.cells) return;
  Complain("G7",
           std::to_string(promised) + " cells are promised of " + std::to_string(capacity_.cells));
}

}  // namespace penstock::sim
