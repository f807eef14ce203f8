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

void ConfigureLog(const Values& values, std::string_view component) {
  const bool has_switch = Find(values.program(), "json-output") != nullptr;
  const bool json =
      values.GetString("log-format") == "json" || (has_switch && values.GetBool("json-output"));
  log::Configure(component, LevelOf(values.GetString("log-level")),
                 json ? log::Format::kJson : log::Format::kText);
  for (const std::string& warning : values.warnings()) log::Warn(warning);
}

}  // namespace penstock::options
