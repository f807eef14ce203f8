#include "tools/plan/step_table.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fnv.h"
#include "common/status.h"
#include "sim/fleet/recorded_run.h"
#include "sim/fleet/step_fit.h"
#include "tools/replay/input_file.h"

namespace penstock::plan {
namespace {

constexpr std::string_view kTableTitle = "penstock-warmup ";  // shard/executor/warmup_table.h
constexpr std::string_view kEnd = "end ";

absl::Status Broken(const std::string& path, std::size_t line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ":", line, ": ", what));
}

absl::StatusOr<Calibration> ParseTable(const std::string& text, const std::string& path) {
  const std::size_t end = text.rfind("\n" + std::string(kEnd));
  if (end == std::string::npos) {
    return absl::InvalidArgumentError(path + ": is cut off; the last line must be `end CHECKSUM`");
  }
  const std::string_view body = std::string_view(text).substr(0, end + 1);
  const std::string sum = absl::StrCat(absl::Hex(Fnv1a(body), absl::kZeroPad16), "\n");
  if (text.substr(end + 1 + kEnd.size()) != sum) {
    return absl::InvalidArgumentError(path + ": is damaged; its checksum does not match");
  }
  Calibration table;
  std::size_t line = 0;
  for (const auto row : absl::StrSplit(absl::string_view(body.data(), end), '\n')) {
    if (++line <= 2) continue;  // title and identity
    const std::vector<std::string> cells = absl::StrSplit(row, ' ');
    StepTimeSample sample;
    std::int64_t nanoseconds = 0;
    const bool read = cells.size() == 4 && absl::SimpleAtoi(cells[0], &sample.prefill_tokens) &&
                      absl::SimpleAtoi(cells[1], &sample.decode_rows) &&
                      absl::SimpleAtoi(cells[2], &sample.context_tokens) &&
                      absl::SimpleAtoi(cells[3], &nanoseconds);
    if (!read || nanoseconds <= 0) {
      return Broken(path, line,
                    absl::StrCat("must be `PREFILL DECODES CONTEXT NANOSECONDS`. Given: `",
                                 row.substr(0, 40), "`"));
    }
    sample.time = Duration(nanoseconds);
    table.samples.push_back(sample);
  }
  return table;
}

}  // namespace

bool IsInputLog(std::string_view text) { return text.starts_with("penstock input log "); }

absl::StatusOr<StepTable> ReadStepTable(const std::string& path) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, replay::ReadInputFile(path));
  StepTable table;
  if (IsInputLog(text)) {
    absl::StatusOr<sim::RecordedRun> run = sim::ReadRecordedRun(text);
    if (!run.ok()) return WithContext(run.status(), path);
    return StepTable{std::move(run->warm_up), std::move(run->step_time), run->capacity};
  }
  if (!text.starts_with(kTableTitle)) {
    return Broken(path, 1, "must be a warm-up table of a shard, or a log of --record");
  }
  PENSTOCK_ASSIGN_OR_RETURN(table.warm_up, ParseTable(text, path));
  const auto fitted = sim::FitStepTimes(table.warm_up, {});
  if (!fitted.ok()) return WithContext(fitted.status(), path);
  table.step_time = *fitted;
  return table;
}

}  // namespace penstock::plan
