#include "router/http/access_log.h"

#include <chrono>
#include <string>
#include <vector>

#include "common/log.h"
#include "common/log_fields.h"

namespace penstock::router {
namespace {

constexpr std::size_t kShownPath = 200;

double Millis(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
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
  if (answer.tokens) line += ", " + std::to_string(answer.tokens->generated) + " tokens";
  if (!head.tenant.empty()) line.append(", key ").append(head.tenant);
  if (answer.too_slow) line.append(" (the client reads too slowly)");
  std::vector<log::Field> fields = {{"method", method},
                                    {"path", path},
                                    {"route", answer.route},
                                    {"scheme", answer.encrypted ? "https" : "http"},
                                    {"status", std::int64_t{answer.status}},
                                    {"bytes", static_cast<std::int64_t>(answer.sent)},
                                    {"duration_ms", Millis(took)},
                                    {"request_id", head.request_id},
                                    {"peer", answer.peer}};
  if (answer.tokens) {
    fields.push_back({"prompt_tokens", static_cast<std::int64_t>(answer.tokens->prompt)});
    fields.push_back({"generated_tokens", static_cast<std::int64_t>(answer.tokens->generated)});
    fields.push_back({"elapsed_ms", Millis(answer.tokens->elapsed)});
  }
  if (!head.tenant.empty()) fields.push_back({"tenant", head.tenant});
  log::Info(line, fields);
}

}  // namespace penstock::router
