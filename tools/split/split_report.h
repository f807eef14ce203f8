// The output of penstock-split: a partition with its padding, and padding by number of sub-batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/split/split_options.h"

namespace penstock::split {

// Rows are numbered from 1, in the order given.
struct SplitReport {
  std::vector<std::vector<std::uint32_t>> parts;
  std::vector<std::vector<std::uint64_t>> lengths;
  std::uint64_t tokens = 0;
  std::uint64_t padding = 0;

  double Sparsity() const;         // padding / (padding + tokens)
  double PaddingPerToken() const;  // padding / tokens
};

SplitReport Split(const SplitOptions& options);
// The best partition into 1, 2, … max_splits parts (at most one per row).
std::vector<SplitReport> Sweep(const SplitOptions& options);

std::string ToText(const SplitOptions& options, const SplitReport& report);
std::string ToJson(const SplitReport& report);
std::string ToTable(const std::vector<SplitReport>& sweep);
std::string ToJson(const std::vector<SplitReport>& sweep);
// Cells and sparsity by number of sub-batches, with the line of --max-sparsity.
std::string ToSvg(const SplitOptions& options, const std::vector<SplitReport>& sweep);

}  // namespace penstock::split
