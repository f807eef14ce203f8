#include "shard/service/row_rules.h"

#include <algorithm>
#include <string>

#include "common/status.h"
#include "shard/service/start_checks.h"

namespace penstock::shard {

void RowRules::BeginPlan() {
  used_ = 0;
  for (Row& row : rows_) row.width = 0;
}

absl::Status RowRules::Place(SlotId slot, std::uint32_t width, std::uint32_t committed) {
  Row& row = rows_[slot.value()];
  if (row.lost) return Bad("groups.rows", slot.value(), "a slot that never left the row store");
  if (row.width > 0) return Bad("groups.rows", slot.value(), "a row of one group only");
  if (width < committed) {
    return Bad("groups.width", width,
               "at least the " + std::to_string(committed) + " committed positions of slot " +
                   std::to_string(slot.value()));
  }
  row.width = width;
  row.given = true;
  used_ += width;
  return absl::OkStatus();
}

absl::Status RowRules::EndPlan() {
  for (Row& row : rows_) row.lost |= row.given && row.width == 0;
  if (used_ <= cells_) return absl::OkStatus();
  return Bad("groups.width", used_,
             "rows * width of all groups at most the " + std::to_string(cells_) + " cells");
}

absl::Status RowRules::CheckWrite(const Segment& decode, std::uint32_t committed,
                                  std::uint64_t end) const {
  const std::uint32_t width = rows_[decode.slot.value()].width;
  if (end <= width) return absl::OkStatus();
  return Bad("segments.decode.max_rows", decode.max_rows,
             "within the width " + std::to_string(width) + " of its row from committed length " +
                 std::to_string(committed) + " (slot " + std::to_string(decode.slot.value()) + ")");
}

// A sequence that lost its padded KV row cannot be computed.
absl::Status RowRules::CheckSegments(const StepPlan& plan) const {
  for (const SegmentGroup& group : plan.groups) {
    for (const std::uint32_t index : group.segments) {
      const SlotId slot = plan.segments[index].slot;
      if (Has(slot) == (std::ranges::count(group.rows, slot) > 0)) continue;
      return Bad("groups.segments", index,
                 "the segment of a row of its group (slot " + std::to_string(slot.value()) + ")");
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::shard
