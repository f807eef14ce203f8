// The other programs of Penstock, which lie beside this one.
#pragma once

#include <string>
#include <vector>

namespace penstock::cli {

// Where a program would lie: "/opt/penstock/bin/penstock-bench".
std::string ProgramPath(const std::string& program);

// Replaces this process by the program, which calls itself `shown`: "penstock serve". Returns only
// on an error, with the exit code; the error is printed.
int RunProgram(const std::string& program, const std::string& shown,
               const std::vector<std::string>& arguments);

}  // namespace penstock::cli
