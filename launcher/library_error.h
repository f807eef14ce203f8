// Why the dynamic linker could not start a program, with the remedy.
#pragma once

#include <string>

#include "launcher/child_process.h"

namespace penstock::launcher {

// `line` is a line of the program's output. Returns an empty string if it is no error of the
// linker. If the linker found no readable file, the program is started again, to learn where it
// looked.
std::string LibraryError(const std::string& line, const ChildSpec& program);

}  // namespace penstock::launcher
