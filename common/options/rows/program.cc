#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kRows[] = {
    {.name = "help",
     .short_name = 'h',
     .flag_text = "common",
     .components = kAllComponents,
     .help = "Print the options and exit; --help=all for every option, --help=GROUP for a group."},
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
     .help = "Print every value and where it came from, and exit."},
    {.name = "check",
     .type = Type::kBool,
     .default_text = "false",
     .components = kRouter,
     .help = "Read the keys, certificates and templates that the options name, say what is wrong "
             "with them and exit. The launcher asks for this before it starts shards."},
    {.name = "env",
     .short_name = 'e',
     .type = Type::kBool,
     .default_text = "false",
     .components = kLauncher,
     .help = "Log versions, machine and devices before the start. Without --model-id: and exit."},
    {.name = "config",
     .type = Type::kPath,
     .components = kLauncher,
     .help = "YAML file with options: one `name: value` a line, an unknown name is an error."},
};

}  // namespace

std::span<const OptionSpec> ProgramRows() { return kRows; }

}  // namespace penstock::options
