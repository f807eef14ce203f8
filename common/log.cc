#include "common/log.h"

#include "common/json_text.h"
#include "common/log_fields.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <memory>
#include <string>

namespace penstock::log {
namespace {

struct State {
  std::shared_ptr<spdlog::logger> logger = spdlog::stderr_logger_mt("penstock");
  bool json = false;
};

State& TheState() {
  static State state;
  return state;
}

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void Write(spdlog::level::level_enum level, std::string_view message) {
  State& state = TheState();
  if (!state.logger->should_log(level)) return;
  if (!state.json) {
    state.logger->log(level, "{}", message);
    return;
  }
  const boost::json::string text(message.data(), message.size());
  state.logger->log(level, "{}", boost::json::serialize(text));
}

std::string ToJson(const std::variant<std::string_view, std::int64_t, double>& value) {
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    return boost::json::serialize(boost::json::string(text->data(), text->size()));
  }
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  return JsonText(std::get<double>(value));
}

}  // namespace

void Configure(std::string_view component, Level level, Format format) {
  State& state = TheState();
  state.json = format == Format::kJson;
  const std::string name(component);
  state.logger->set_level(ToSpdlog(level));
  if (state.json) {
    state.logger->set_pattern(R"({"timestamp":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","component":")" +
                                  name + R"(","message":%v})",
                              spdlog::pattern_time_type::utc);
  } else {
    state.logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %-7l " + name + ": %v",
                              spdlog::pattern_time_type::utc);
  }
}

void Debug(std::string_view message) { Write(spdlog::level::debug, message); }
void Info(std::string_view message) { Write(spdlog::level::info, message); }
void Info(std::string_view message, std::span<const Field> fields) {
  State& state = TheState();
  if (!state.json || !state.logger->should_log(spdlog::level::info)) return Info(message);
  std::string record = ToJson(message);
  for (const Field& field : fields) {
    record.append(",\"").append(field.name).append("\":").append(ToJson(field.value));
  }
  state.logger->log(spdlog::level::info, "{}", record);
}
void Warn(std::string_view message) { Write(spdlog::level::warn, message); }
void Error(std::string_view message) { Write(spdlog::level::err, message); }

}  // namespace penstock::log
