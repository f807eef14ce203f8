// Completion scripts from the tables of commands and options.
#pragma once

#include <string>
#include <string_view>

namespace penstock::cli {

// For bash, zsh or fish. Empty for another shell.
std::string CompletionScript(std::string_view shell);

}  // namespace penstock::cli
