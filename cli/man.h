// The manual page.
#pragma once

#include <string>

namespace penstock::cli {

// penstock(1) in roff, from the tables of commands and options.
std::string ManPage();

}  // namespace penstock::cli
