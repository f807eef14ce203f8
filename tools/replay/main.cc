#include <cstdio>
#include <string_view>

#include "tools/replay/commands.h"

namespace {

struct Command {
  std::string_view name;
  int (*run)(int argc, const char* const* argv);
};

constexpr Command kCommands[] = {
    {"run", penstock::replay::RunCommand},
    {"trace", penstock::replay::TraceCommand},
    {"search", penstock::replay::SearchCommand},
};

constexpr char kUsage[] =
    "Usage: penstock-replay COMMAND [OPTIONS]\n"
    "\n"
    "  run LOG              re-runs a recorded input log and compares the outputs\n"
    "  trace FILE|uniform   a request trace on simulated groups under a virtual clock\n"
    "  search FILE|uniform  the highest request rate that meets an objective\n"
    "\n"
    "penstock-replay COMMAND --help prints the options.\n";

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  for (const Command& command : kCommands) {
    if (command.name == name) return command.run(argc - 1, argv + 1);
  }
  const bool help = name == "--help" || name == "-h" || name == "help";
  if (!help && !name.empty()) {
    std::fprintf(stderr, "penstock-replay: error: %s: unknown %s\n\n", argv[1],
                 name.starts_with('-') ? "option" : "command");
  }
  std::fputs(kUsage, help ? stdout : stderr);
  return help ? 0 : 2;
}
