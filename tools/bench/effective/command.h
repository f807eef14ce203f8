// penstock-bench effective. Prints errors on standard error; gives the exit code: 0, 1 (the run, a
// request or, with --check, an expectation failed), 2 (bad options).
#pragma once

namespace penstock::bench::effective {

// `argv[0]` is the subcommand's name.
int RunCommand(int argc, const char* const* argv);

}  // namespace penstock::bench::effective
