#include "tools/replay/workload.h"

#include <charconv>
#include <cstdint>
#include <string_view>

#include "common/bad_option.h"
#include "common/status.h"
#include "sim/trace/read_trace.h"
#include "sim/trace/shape_trace.h"

namespace penstock::replay {

using options::Values;

namespace {

// "32-512", or "64" for one length.
absl::StatusOr<sim::LengthRange> ReadRange(const Values& values, std::string_view name) {
  const std::string& text = values.GetString(name);
  const char* const end = text.data() + text.size();
  sim::LengthRange range;
  const auto low = std::from_chars(text.data(), end, range.low);
  range.high = range.low;
  std::from_chars_result high = low;
  if (low.ec == std::errc() && low.ptr != end && *low.ptr == '-') {
    high = std::from_chars(low.ptr + 1, end, range.high);
  }
  if (high.ec != std::errc() || high.ptr != end || range.low < 1 || range.high < range.low ||
      range.high > sim::kMaxTraceTokens) {
    return BadOption(name, text, "LOW-HIGH with 1 <= LOW <= HIGH <= 1048576");
  }
  return range;
}

}  // namespace

absl::StatusOr<sim::Trace> ReadWorkload(const std::string& source, int rows, const Values& values) {
  const auto seed = static_cast<std::uint64_t>(values.GetInt("seed"));
  const auto requests = values.FindInt("requests");
  if (source == "uniform") {
    PENSTOCK_ASSIGN_OR_RETURN(const sim::LengthRange prompt, ReadRange(values, "prompt-tokens"));
    PENSTOCK_ASSIGN_OR_RETURN(const sim::LengthRange output, ReadRange(values, "output-tokens"));
    return sim::UniformTrace(static_cast<std::uint32_t>(requests.value_or(rows)), prompt, output,
                             seed);
  }
  PENSTOCK_ASSIGN_OR_RETURN(sim::Trace trace, sim::ReadTrace(source));
  if (requests) trace = sim::Resample(trace, static_cast<std::uint32_t>(*requests), seed);
  return trace;
}

}  // namespace penstock::replay
