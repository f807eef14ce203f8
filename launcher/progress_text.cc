#include "launcher/progress_text.h"

#include <cstdio>

namespace penstock::launcher {
namespace {

std::string Amount(double value, const std::string& unit) {
  if (unit != "bytes") return std::to_string(static_cast<std::uint64_t>(value));
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int scale = 0;
  while (value >= 1024 && scale < 4) {
    value /= 1024;
    ++scale;
  }
  char text[32];
  std::snprintf(text, sizeof text, value < 10 && scale > 0 ? "%.1f %s" : "%.0f %s", value,
                kUnits[scale]);
  return text;
}

// ", 310 MiB/s, 1 s left"; empty until a rate is known.
std::string RateAndRest(const ProgressNotice& notice, std::uint64_t done_before, double seconds) {
  if (seconds < 0.1 || notice.done <= done_before || notice.done >= notice.total) return "";
  const double rate = static_cast<double>(notice.done - done_before) / seconds;
  const double left = static_cast<double>(notice.total - notice.done) / rate;
  return ", " + Amount(rate, notice.unit) + "/s, " +
         std::to_string(static_cast<std::uint64_t>(left + 0.5)) + " s left";
}

}  // namespace

std::optional<std::string> ProgressText::Line(const std::string& child,
                                              const ProgressNotice& notice, Time now) {
  Stage& stage = stages_[child];
  const bool last = notice.total > 0 && notice.done >= notice.total;
  // A child that is started again repeats its stages.
  const bool first = stage.name != notice.stage || (stage.over && !last);
  if (first) stage = {notice.stage, now, notice.done, now};
  if (stage.over) return std::nullopt;
  stage.over = last;
  if (!first && !last && now - stage.printed < interval_) return std::nullopt;
  stage.printed = now;
  if (notice.total == 0) return "reading " + notice.stage;
  const std::uint64_t percent = 100 * notice.done / notice.total;
  if (percent == 0) return std::nullopt;
  std::string line = notice.stage;
  const std::string unit = notice.unit.empty() || notice.unit == "bytes" ? "" : " " + notice.unit;
  line += " " + Amount(static_cast<double>(notice.done), notice.unit) + " of " +
          Amount(static_cast<double>(notice.total), notice.unit) + unit + " (" +
          std::to_string(percent) + " %)";
  const double seconds = std::chrono::duration<double>(now - stage.began).count();
  return line + RateAndRest(notice, stage.done_at_begin, seconds);
}

}  // namespace penstock::launcher
