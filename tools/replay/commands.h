// penstock-replay's subcommands. Each reads its own options, prints errors on standard error and
// returns the exit code: 0, 1 (the run failed), 2 (bad options).
#pragma once

namespace penstock::replay {

// `argv[0]` is the name in help and errors: "penstock-replay run".
int RunCommand(int argc, const char* const* argv);
int LengthsCommand(int argc, const char* const* argv);
int TraceCommand(int argc, const char* const* argv);
int SearchCommand(int argc, const char* const* argv);
int WhatIfCommand(int argc, const char* const* argv);

}  // namespace penstock::replay
