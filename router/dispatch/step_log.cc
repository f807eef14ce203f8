#include "router/dispatch/step_log.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "common/bad_option.h"
#include "common/log.h"

namespace penstock::router {
namespace {

std::int64_t Microseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

}  // namespace

absl::Status StepLog::Open(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  path_ = path;
  file_.open(path, std::ios::trunc);
  if (file_) return absl::OkStatus();
  return BadOption("step-log", path, std::string("a writable file: ") + std::strerror(errno));
}

void StepLog::Write(const scheduler::StepInfo& info, std::optional<Duration> taken) {
  if (!file_.is_open()) return;
  file_ << "{\"group\":" << info.group.value() << ",\"step\":" << info.step.value()
        << ",\"rows\":" << info.decode_rows << ",\"prefill_tokens\":" << info.prefill_tokens
        << ",\"sequences\":" << info.sequences << ",\"waiting\":" << info.waiting
        << ",\"blocks_free\":" << info.blocks_free << ",\"blocks_used\":" << info.blocks_used
        << ",\"blocks_cached\":" << info.blocks_cached
        << ",\"blocks_retiring\":" << info.blocks_retiring
        << ",\"window_blocks_free\":" << info.window_blocks_free
        << ",\"window_blocks_used\":" << info.window_blocks_used
        << ",\"window_blocks_cached\":" << info.window_blocks_cached
        << ",\"window_blocks_retiring\":" << info.window_blocks_retiring
        << ",\"decode_parts\":" << info.decode_parts << ",\"decode_cells\":" << info.decode_cells
        << ",\"decode_tokens\":" << info.decode_tokens << ",\"resplit\":" << info.resplit
        << ",\"predicted_us\":" << Microseconds(info.predicted);
  if (taken.has_value()) file_ << ",\"taken_us\":" << Microseconds(*taken);
  file_ << "}\n";
  if (file_.flush()) return;
  log::Warn("--step-log " + path_ + ": cannot be written; the log of steps ends");
  file_.close();
}

}  // namespace penstock::router
