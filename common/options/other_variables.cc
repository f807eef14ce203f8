#include "common/options/other_variables.h"

#include <algorithm>

#include "common/options/table.h"

namespace penstock::options {

bool IsKubernetesServiceLink(std::string_view text) {
  return text.starts_with("tcp://") || text.starts_with("udp://");
}

bool IsKubernetesServiceName(std::string_view name) {
  if (name.ends_with("_SERVICE_HOST") || name.find("_SERVICE_PORT") != name.npos) return true;
  const std::size_t port = name.find("_PORT_");
  if (port == name.npos) return false;
  const std::string_view rest = name.substr(port + std::string_view("_PORT_").size());
  const std::size_t end = rest.find_first_not_of("0123456789");
  if (end == 0 || end == rest.npos) return false;
  return rest.substr(end).starts_with("_TCP") || rest.substr(end).starts_with("_UDP");
}

bool IsOtherVariable(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "BIN",           "BUILD_DIR",           "CLANG_BUILD_DIR", "DEPS_DIR",   "FIRST_SEED",
      "ISA",           "LONG_TESTS",          "MODEL_ORACLE",    "MUTANT",     "NOTIFY_FD",
      "ORACLE_PYTHON", "SHARED_DATA",         "SOURCE_ROOT",     "STAGE_FILE", "TORCH_DIR",
      "TRANSCRIPTS",   "TRANSFORMERS_PYTHON", "UPDATE_DOCS",     "URL"};
  name.remove_prefix(kVariablePrefix.size());
  return std::ranges::count(kNames, name) > 0;
}

}  // namespace penstock::options
