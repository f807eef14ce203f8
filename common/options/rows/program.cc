#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kProgramRows[] = {
    OptionSpec(
        "help", Type::kString, "",
        "Print the options and exit; --help=GROUP, such as --help=reach, prints those of one "
        "group.",
        {.short_name = 'h', .flag_text = "common", .components = kAllComponents}),
    OptionSpec("help-all", Type::kBool, "false", "Print every option and exit.",
               {.components = kAllComponents}),
    OptionSpec("version", Type::kBool, "false", "Print the version and exit.",
               {.short_name = 'V', .components = kAllComponents}),
    OptionSpec("print-config", Type::kBool, "false", "Print every value with its source and exit.",
               {.components = kAllComponents}),
    OptionSpec(
        "check", Type::kBool, "false",
        "Read the keys, certificates and templates that the options name, report errors and exit.",
        {.components = kRouter}),
    OptionSpec("check-chat", Type::kBool, "false",
               "The same as --check, and also read the tokenizer and try the chat template.",
               {.components = kRouter}),
    OptionSpec("memory-plan", Type::kBool, "false",
               "Print what a rank of the model needs, as JSON, and exit; reads no weights.",
               {.components = kShard}),
    OptionSpec("env", Type::kBool, "false",
               "Log versions, machine and devices before the start; exit after that if --model-id "
               "is unset.",
               {.short_name = 'e', .advanced = true, .components = kLauncher}),
    OptionSpec("config", Type::kPath, "", "YAML file with one `option: value` a line.",
               {.components = kLauncher}),
};

}  // namespace

std::span<const OptionSpec> ProgramRows() { return kProgramRows; }

}  // namespace penstock::options
