// The part of PlanChecker that concerns rows of the padded KV layout.
#include <algorithm>
#include <string>

#include "common/status.h"
#include "shard/service/plan_checker.h"

namespace penstock::shard {
namespace {

absl::Status Bad(const char* field, std::uint64_t value, const std::string& limit) {
  return BadValue(field, std::to_string(value), limit);
}

}  // namespace

absl::Status PlanChecker::ApplyRows(const StepPlan& plan) {
  std::uint64_t cells = 0;
  for (auto& slot : slots_) {
    if (slot.has_value()) slot->width = 0;
  }
  for (const SegmentGroup& group : plan.groups) {
    cells += std::uint64_t{group.rows.size()} * group.width;
    for (const SlotId row : group.rows) PENSTOCK_RETURN_IF_ERROR(ApplyRow(row, group.width));
  }
  for (auto& slot : slots_) {
    if (slot.has_value() && slot->in_cells && slot->width == 0) slot->left = true;
  }
  if (cells <= bounds_.cells) return absl::OkStatus();
  return Bad("groups.width", cells,
             "rows * width of all groups at most the " + std::to_string(bounds_.cells) + " cells");
}

absl::Status PlanChecker::ApplyRow(SlotId id, std::uint32_t width) {
  Slot* slot = nullptr;
  PENSTOCK_RETURN_IF_ERROR(FindActive(id, "groups.rows", &slot));
  if (slot->left) return Bad("groups.rows", id.value(), "a slot that never left the row store");
  if (slot->width > 0) return Bad("groups.rows", id.value(), "a row of one group only");
  if (slot->computed < slot->prompt_length) {
    return Bad("groups.rows", id.value(), "a slot whose whole prompt was computed");
  }
  if (width < slot->committed) {
    return Bad("groups.width", width,
               "at least the " + std::to_string(slot->committed) + " committed positions of slot " +
                   std::to_string(id.value()));
  }
  slot->width = width;
  if (!slot->in_cells) FreeBlocks(*slot);
  slot->in_cells = true;
  return absl::OkStatus();
}

// A row that was left out of the groups has lost its cells: nothing of it can be computed.
absl::Status PlanChecker::CheckDecodesInRows(const StepPlan& plan) const {
  for (const SegmentGroup& group : plan.groups) {
    for (const std::uint32_t index : group.segments) {
      const SlotId id = plan.segments[index].slot;
      const bool inside = std::find(group.rows.begin(), group.rows.end(), id) != group.rows.end();
      if (slots_[id.value()]->in_cells == inside) continue;
      return Bad("groups.segments", index,
                 "the segment of a row of its group (slot " + std::to_string(id.value()) + ")");
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::shard
