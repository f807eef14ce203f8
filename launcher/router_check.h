// Lets the router check keys, certificates and templates before shards load a model for minutes.
#pragma once

#include "launcher/child_process.h"
#include "launcher/preflight.h"

namespace penstock::launcher {

// Runs the router with --check, which takes tens of milliseconds, and returns its error. Gives up
// after 10 s, since the start will report the same error.
Problem CheckRouter(ChildSpec router);

}  // namespace penstock::launcher
