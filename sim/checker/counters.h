// Compares the core's counters with those of the checker.
#pragma once

#include "scheduler/scheduler.h"
#include "sim/checker/findings.h"

namespace penstock::sim {

// `own`: by the plans and events.
void CompareCounters(const scheduler::Snapshot& own, const scheduler::Snapshot& told,
                     Findings& findings);

}  // namespace penstock::sim
