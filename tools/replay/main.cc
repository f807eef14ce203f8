#include <cstdio>
#include <string>
#include <string_view>

#include "common/exit_codes.h"
#include "common/options/table.h"
#include "tools/replay/commands.h"

namespace {

struct Command {
  std::string_view name;
  int (*run)(int argc, const char* const* argv);
};

constexpr Command kCommands[] = {
    {"run", penstock::replay::RunCommand},        {"lengths", penstock::replay::LengthsCommand},
    {"trace", penstock::replay::TraceCommand},    {"search", penstock::replay::SearchCommand},
    {"what-if", penstock::replay::WhatIfCommand},
};

constexpr char kUsage[] =
    "Usage: %s COMMAND [OPTIONS]\n"
    "\n"
    "  run LOG              re-runs a recorded input log and compares the outputs\n"
    "  lengths LOG          prompts and output lengths of a log, for tools/rank\n"
    "  trace FILE|uniform   a request trace on simulated groups under a virtual clock\n"
    "  search FILE|uniform  the highest request rate that meets an objective\n"
    "  what-if LOG          the requests of an input log with other settings\n"
    "\n"
    "%s COMMAND --help prints the options.\n"
    "Exit codes: 0; 1 if outputs differ, a guarantee is broken or the run fails; 2 if an option "
    "or\n"
    "a file cannot be used.\n";

}  // namespace

int main(int argc, char** argv) {
  const std::string program(
      penstock::options::ShownName(argc > 0 ? argv[0] : "", "penstock-replay"));
  const std::string_view name = argc > 1 ? argv[1] : "";
  for (const Command& command : kCommands) {
    if (command.name != name) continue;
    std::string shown = program + " " + argv[1];
    argv[1] = shown.data();
    return command.run(argc - 1, argv + 1);
  }
  const bool help = name == "--help" || name == "-h" || name == "help";
  if (!help && !name.empty()) {
    std::fprintf(stderr, "%s: error: %s: unknown %s\n\n", program.c_str(), argv[1],
                 name.starts_with('-') ? "option" : "command");
  }
  std::fprintf(help ? stdout : stderr, kUsage, program.c_str(), program.c_str());
  return help ? penstock::kExitOk : penstock::kExitUsage;
}
