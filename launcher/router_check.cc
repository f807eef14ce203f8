#include "launcher/router_check.h"

#include <deque>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "common/exit_codes.h"
#include "common/status.h"
#include "launcher/child_output.h"
#include "launcher/memory_limit.h"

namespace penstock::launcher {
namespace {

std::string LastLine(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

std::deque<std::string> Lines(const std::string& text) {
  std::istringstream stream(text);
  std::deque<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

Problem CheckRouter(ChildSpec router) {
  router.arguments.emplace_back("--check");
  const absl::StatusOr<ChildOutput> said = RunForOutput(router);
  if (!said.ok()) return {kExitFailure, Message(said.status())};
  const std::optional<ExitStatus>& exit = said->exit;
  if (!exit || (!exit->by_signal && exit->code == kExitOk)) return {};
  const std::string line = LastLine(said->text);
  if (const std::string memory = MemoryLimitError(*exit, Lines(said->text)); !memory.empty()) {
    return {kExitMemory, "the router " + exit->Describe() + ": " + memory};
  }
  const int code = exit->by_signal ? kExitFailure : exit->code;
  return {code, line.empty() ? "the router " + exit->Describe() : line};
}

}  // namespace penstock::launcher
