#include "router/api/audit_log.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "common/bad_option.h"
#include "common/log.h"
#include "router/json/writer.h"

namespace penstock::router {
namespace {

constexpr std::size_t kShownPath = 200;

double Millis(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::int64_t UnixMillis() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::string LineOf(const AnswerRecord& answer) {
  const RequestHead& head = answer.head;
  std::string line = "{";
  json::AppendMembers(line, "time_ms", UnixMillis(), "request_id", head.request_id, "tenant",
                      head.tenant, "method", head.method, "route", answer.route, "path",
                      head.path.substr(0, kShownPath), "status", answer.status, "duration_ms",
                      Millis(SteadyNow() - head.arrived), "bytes", answer.sent);
  const RequestEnd& end = answer.end;
  if (end.tokens) {
    json::AppendMembers(line, "prompt_tokens", end.tokens->prompt, "generated_tokens",
                        end.tokens->generated);
  }
  if (!end.finish_reason.empty()) json::AppendMembers(line, "finish_reason", end.finish_reason);
  if (end.failure) json::AppendMembers(line, "error_kind", end.failure->kind);
  return line + "}\n";
}

}  // namespace

absl::Status AuditLog::Open(const std::string& path) {
  path_ = path;
  return OpenAgain();
}

absl::Status AuditLog::OpenAgain() {
  std::ofstream file(path_, std::ios::app | std::ios::binary);
  if (!file) {
    return BadOption("audit-log", path_, std::string("a writable file: ") + std::strerror(errno));
  }
  const std::lock_guard lock(mutex_);
  file_ = std::move(file);
  return absl::OkStatus();
}

void AuditLog::Write(const AnswerRecord& answer) {
  const std::string line = LineOf(answer);
  const std::lock_guard lock(mutex_);
  file_.clear();
  file_ << line << std::flush;
  const bool failed = !file_;
  if (failed && !failed_) log::Error("--audit-log " + path_ + ": cannot be written");
  failed_ = failed;
}

}  // namespace penstock::router
