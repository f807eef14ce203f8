// The subcommands of `penstock`: one table for running them, for help, completion and the man page.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/words.h"
#include "common/options/table.h"

namespace penstock::cli {

struct Command {
  std::string_view name;
  std::string_view arguments;  // "[MODEL] [options]"
  std::string_view summary;
  int (*run)(Words words);
  // Null: the command has no options table.
  options::ProgramOptions (*options)() = nullptr;
  // Files are completed after it.
  bool takes_file = false;
};

std::span<const Command> Commands();

// Null if there is none of that name.
const Command* FindCommand(std::string_view name);

// The nearest name; empty if none is near.
std::string_view NearestCommand(std::string_view name);

// Options that the command takes beside those of its table.
std::span<const options::OptionSpec> ExtraOptions(std::string_view command);

// The launcher's options and those of the command.
options::ProgramOptions LauncherAnd(std::string_view command);

std::string HelpText();

// main without the program's name.
int Run(Words words);

}  // namespace penstock::cli
