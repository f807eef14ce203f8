#include "common/options/log_setup.h"

#include "common/log.h"

namespace penstock::options {
namespace {

log::Level LevelOf(std::string_view text) {
  if (text == "debug") return log::Level::kDebug;
  if (text == "warning") return log::Level::kWarn;
  if (text == "error") return log::Level::kError;
  return log::Level::kInfo;
}

}  // namespace

bool LogsJson(const Values& values) {
  const auto has = [&](std::string_view name) { return Find(values.program(), name) != nullptr; };
  if (has("json-output") && values.GetBool("json-output")) return true;
  return has("log-format") && values.GetString("log-format") == "json";
}

void ConfigureLog(const Values& values, std::string_view component) {
  log::Configure(component, LevelOf(values.GetString("log-level")),
                 LogsJson(values) ? log::Format::kJson : log::Format::kText);
  for (const std::string& warning : values.warnings()) log::Warn(warning);
}

}  // namespace penstock::options
