#include "router/http/access_log.h"

#include <chrono>
#include <string>
#include <vector>

#include "common/log.h"
#include "common/log_fields.h"

namespace penstock::router {
namespace {

constexpr std::size_t kShownPath = 200;
constexpr std::size_t kShownFailure = 500;

double Millis(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// An error may repeat what the client wrote: a record must stay one line.
std::string OneLine(std::string_view text) {
  std::string line(text.substr(0, kShownFailure));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  return line;
}

// How the request ended, in the line and in the fields.
void AddEnd(const RequestEnd& end, std::string& line, std::vector<log::Field>& fields) {
  if (end.tokens) {
    line += ", " + std::to_string(end.tokens->generated) + " tokens";
    fields.push_back({"prompt_tokens", static_cast<std::int64_t>(end.tokens->prompt)});
    fields.push_back({"generated_tokens", static_cast<std::int64_t>(end.tokens->generated)});
    fields.push_back({"elapsed_ms", Millis(end.tokens->elapsed)});
  }
  if (!end.finish_reason.empty()) {
    line.append(", finish reason ").append(end.finish_reason);
    fields.push_back({"finish_reason", end.finish_reason});
  }
  if (!end.failure) return;
  line.append(", error ").append(end.failure->kind).append(": ");
  line += OneLine(end.failure->text);
  fields.push_back({"error_kind", end.failure->kind});
  fields.push_back({"error", end.failure->text});
}

}  // namespace

std::string MillisecondsText(Duration duration) {
  const auto tenths = std::chrono::duration_cast<std::chrono::microseconds>(duration).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

void LogAnswer(const AnswerRecord& answer) {
  const RequestHead& head = answer.head;
  const Duration took = SteadyNow() - head.arrived;
  const std::string method = head.method.empty() ? "-" : head.method;
  const std::string path = head.path.substr(0, kShownPath);
  std::string line = method + " " + path + " " + std::to_string(answer.status);
  line.append(", ").append(std::to_string(answer.sent)).append(" bytes in ");
  line.append(MillisecondsText(took)).append(" ms, request ");
  line.append(head.request_id).append(" from ").append(answer.peer);
  if (!head.tenant.empty()) line.append(", key ").append(head.tenant);
  std::vector<log::Field> fields = {{"method", method},
                                    {"path", path},
                                    {"route", answer.route},
                                    {"scheme", answer.encrypted ? "https" : "http"},
                                    {"status", std::int64_t{answer.status}},
                                    {"bytes", static_cast<std::int64_t>(answer.sent)},
                                    {"duration_ms", Millis(took)},
                                    {"request_id", head.request_id},
                                    {"peer", answer.peer}};
  AddEnd(answer.end, line, fields);
  if (!head.tenant.empty()) fields.push_back({"tenant", head.tenant});
  log::Info(line, fields);
}

}  // namespace penstock::router
