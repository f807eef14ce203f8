#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kRows[] = {
    {.name = "help",
     .short_name = 'h',
     .flag_text = "common",
     .components = kAllComponents,
     .help = "Print the common options and exit; --help=GROUP prints one group."},
    {.name = "help-all",
     .type = Type::kBool,
     .default_text = "false",
     .components = kAllComponents,
     .help = "Print every option and exit."},
    {.name = "version",
     .short_name = 'V',
     .type = Type::kBool,
     .default_text = "false",
     .components = kAllComponents,
     .help = "Print the version and exit."},
    {.name = "print-config",
     .type = Type::kBool,
     .default_text = "false",
     .components = kAllComponents,
     .help = "Print every value with its source and exit."},
    {.name = "check",
     .type = Type::kBool,
     .default_text = "false",
     .components = kRouter,
     .help = "Read the keys, certificates and templates that the options name, report errors "
             "and exit."},
    {.name = "env",
     .short_name = 'e',
     .type = Type::kBool,
     .default_text = "false",
     .advanced = true,
     .components = kLauncher,
     .help = "Log versions, machine and devices before the start; without --model-id: then exit."},
    {.name = "config",
     .type = Type::kPath,
     .components = kLauncher,
     .help = "YAML file with one `option: value` a line."},
};

}  // namespace

std::span<const OptionSpec> ProgramRows() { return kRows; }

}  // namespace penstock::options
