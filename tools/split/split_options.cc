#include "tools/split/split_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "common/bad_option.h"
#include "common/options/values.h"
#include "common/status.h"

namespace penstock::split {
namespace {

using options::OptionSpec;
using options::Type;

constexpr std::uint64_t kMaxLength = 16'777'216;
constexpr std::size_t kMaxRows = 65'536;

constexpr OptionSpec kRows[] = {
    // a list would pass over empty elements
    OptionSpec("lengths", Type::kString, "", "Lengths of the rows, for example 38,33,24,22.",
               {.required = options::kTool}),
    OptionSpec("max-sparsity", options::Float(0, 1), "0.33",
               "With --split sparsity: largest share of padding in all cells."),
    OptionSpec("max-splits", options::Int(1, 65536), "3",
               "Maximum number of sub-batches, whatever the sparsity."),
    OptionSpec(
        "split", options::OneOf("sparsity|cost"), "sparsity",
        "sparsity: the fewest sub-batches that meet --max-sparsity; cost: the cheapest ones, "
        "the default of the server."),
    OptionSpec(
        "launch-cells", options::Int(0, 1e12), "256",
        "With --split cost: cells that take as long as one more sub-batch. A server measures "
        "this on its machine."),
    OptionSpec("json", Type::kBool, "false", "Print one JSON object."),
    OptionSpec(
        "sweep", Type::kBool, "false",
        "Print and plot padding and cells for each number of sub-batches up to --max-splits."),
    OptionSpec("svg", Type::kPath, "penstock-split.svg", "File for the plot of --sweep."),
};

absl::StatusOr<std::uint64_t> ReadLength(std::string_view text, std::size_t place) {
  std::uint64_t length = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, length);
  if (read.ec == std::errc() && read.ptr == end && length >= 1 && length <= kMaxLength) {
    return length;
  }
  return BadOption("lengths",
                   text.empty() ? "nothing as element " + std::to_string(place) : std::string(text),
                   "an integer from 1 to " + std::to_string(kMaxLength));
}

absl::StatusOr<std::vector<std::uint64_t>> ReadLengths(std::string_view list) {
  std::vector<std::uint64_t> lengths;
  const auto rows = static_cast<std::size_t>(std::ranges::count(list, ',')) + 1;
  if (rows > kMaxRows) {
    return BadOption("lengths", std::to_string(rows) + " rows",
                     "1 to " + std::to_string(kMaxRows) + " rows");
  }
  for (std::size_t row = 1; row <= rows; ++row) {
    const std::size_t end = list.find(',');
    PENSTOCK_ASSIGN_OR_RETURN(lengths.emplace_back(), ReadLength(list.substr(0, end), row));
    list.remove_prefix(end == list.npos ? list.size() : end + 1);
  }
  return lengths;
}

absl::StatusOr<SplitOptions> ToOptions(const options::Values& values) {
  SplitOptions options;
  PENSTOCK_ASSIGN_OR_RETURN(options.lengths, ReadLengths(values.GetString("lengths")));
  options.max_sparsity = values.GetDouble("max-sparsity");
  const bool cost = values.GetString("split") == "cost";
  options.rule.objective =
      cost ? scheduler::SplitObjective::kCost : scheduler::SplitObjective::kSparsity;
  options.rule.part_cost = static_cast<std::uint64_t>(values.GetInt("launch-cells"));
  options.rule.max_sparsity_ppm =
      static_cast<std::uint32_t>(std::lround(options.max_sparsity * 1e6));
  options.rule.max_splits = static_cast<std::uint32_t>(values.GetInt("max-splits"));
  options.json = values.GetBool("json");
  options.sweep = values.GetBool("sweep");
  options.svg = values.GetString("svg");
  return options;
}

}  // namespace

CommandLine ReadCommandLine(int argc, const char* const* argv) {
  const auto program = options::ProgramWith(
      "penstock-split", "Shows how a padded batch of given lengths is split (docs/scheduling.md).",
      kRows);
  const options::CommandLine line = options::ReadCommandLine(program, argc, argv);
  if (line.exit_code.has_value()) return {absl::CancelledError(), *line.exit_code};
  return {ToOptions(line.values), 2};
}

}  // namespace penstock::split
