// What only the router can see to be wrong (keys, certificates, templates), found out before shards
// load a model for minutes.
#pragma once

#include "launcher/child_process.h"
#include "launcher/preflight.h"

namespace penstock::launcher {

// Runs the router with --check, which takes some ten milliseconds, and gives what it says. One that
// does not end within 10 s is not waited for: its start will tell.
Problem CheckRouter(ChildSpec router);

}  // namespace penstock::launcher
