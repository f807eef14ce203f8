// penstock-plan: options to a search and its report.
#pragma once

namespace penstock::plan {

// Prints errors on standard error. Returns the exit code: 0, 1 (no plan meets the objective), 2
// (bad options or files).
int PlanCommand(const char* program, int argc, const char* const* argv);

}  // namespace penstock::plan
