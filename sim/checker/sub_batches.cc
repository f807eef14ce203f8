#include "sim/checker/sub_batches.h"

#include <algorithm>
#include <functional>

namespace penstock::sim {

std::vector<std::string> PartitionProblems(const StepPlan& plan) {
  if (plan.groups.empty()) return {};
  std::vector<std::string> problems;
  std::vector<std::uint32_t> named;
  for (const SegmentGroup& group : plan.groups) {
    if (group.segments.empty() && group.rows.empty()) problems.push_back("an empty sub-batch");
    named.insert(named.end(), group.segments.begin(), group.segments.end());
  }
  std::sort(named.begin(), named.end());
  for (std::uint32_t i = 0; i < named.size(); ++i) {
    if (named[i] == i) continue;
    problems.push_back("sub-batches overlap or skip a segment");
    return problems;
  }
  if (named.size() != plan.segments.size()) problems.push_back("a segment is in no sub-batch");
  return problems;
}

std::vector<std::string> SplitProblems(const StepPlan& plan, const scheduler::StepInfo& info,
                                       std::uint32_t max_splits) {
  std::uint32_t parts = 0;
  for (const SegmentGroup& group : plan.groups) {
    const auto decodes = [&plan](std::uint32_t index) {
      return index < plan.segments.size() && plan.segments[index].kind == Segment::Kind::kDecode;
    };
    parts += !group.rows.empty() || std::ranges::any_of(group.segments, decodes);
  }
  std::vector<std::string> problems;
  if (parts > max_splits) problems.push_back("more sub-batches than max_splits");
  if (info.decode_parts != parts) problems.push_back("StepInfo has another number of sub-batches");
  if (info.decode_tokens > info.decode_cells) problems.push_back("more tokens than cells");
  if (parts == 0 && (info.decode_cells > 0 || info.resplit)) problems.push_back("cells of no rows");
  return problems;
}

std::uint64_t CellsOfBestPartition(std::vector<std::uint64_t> lengths, std::uint32_t max_parts) {
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  const std::size_t count = lengths.size();
  std::vector<std::uint64_t> least(count + 1, 0);  // [n]: of the n longest rows
  for (std::size_t i = 0; i < count; ++i) least[i + 1] = lengths[0] * (i + 1);
  for (std::size_t parts = 2; parts <= std::min<std::size_t>(max_parts, count); ++parts) {
    for (std::size_t end = count; end > 0; --end) {
      for (std::size_t cut = 1; cut < end; ++cut) {
        least[end] = std::min(least[end], least[cut] + lengths[cut] * (end - cut));
      }
    }
  }
  return least[count];
}

}  // namespace penstock::sim
