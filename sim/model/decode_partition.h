// The decode sub-batches of one group (docs/scheduling.md, "Splitting the batch"). Tries every cut
// of the rows sorted by length.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "common/ids.h"
#include "scheduler/config.h"

namespace penstock::sim {

struct PartitionRow {
  SequenceId sequence;
  std::uint64_t length = 0;  // positions after the step
  std::uint64_t weight = 1;  // query rows
};

// The minimum of padded positions for rows of these lengths in at most `max_parts` parts.
std::uint64_t LeastCells(const std::vector<std::uint64_t>& lengths, std::size_t max_parts);

class DecodePartition {
 public:
  using Parts = std::vector<std::vector<std::size_t>>;  // indexes of rows, ascending

  // `cells`: the limit of the padded KV layout; 0 = none.
  DecodePartition(const scheduler::Config& config, std::uint64_t cells)
      : config_(config), cells_(cells) {}

  // The rows of a step, by ascending sequence. A launch costs as much as `launch` cells.
  void Update(const std::vector<PartitionRow>& rows, std::uint64_t launch);

  const Parts& parts() const { return parts_; }
  // The step took a new partition, and it or the old one has several parts.
  bool renewed() const { return renewed_; }
  // Rows whose part changed by that, or which have their first.
  const std::set<std::size_t>& moved() const { return moved_; }

 private:
  using Rows = std::vector<PartitionRow>;

  Parts Best(const Rows& rows, std::uint64_t launch) const;
  void PlaceNew(const Rows& rows, std::uint64_t launch, Parts& parts) const;
  bool Overflows(const Rows& rows, const Parts& parts) const;
  bool Pays(const Rows& rows, const Parts& kept, const Parts& fresh, std::uint64_t launch,
            std::uint64_t moved_cells) const;

  const scheduler::Config config_;
  const std::uint64_t cells_;
  std::vector<SequenceId> members_;
  std::uint32_t steps_ = 0;  // since the partition was computed
  Parts parts_;              // of members_
  bool renewed_ = false;
  std::set<std::size_t> moved_;
};

}  // namespace penstock::sim
