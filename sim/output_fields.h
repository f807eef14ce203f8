// The fields of Outputs, one after another, to test that a digest of them covers each. The list of
// fields is the simulation's own: a new field does not compile until it is added.
#pragma once

#include <cstddef>

#include "scheduler/output.h"

namespace penstock::sim {

// Every number, flag and text is a field, and so are the length of each list, the presence of each
// optional value and the alternative of each event.
std::size_t CountFields(scheduler::Outputs& out);
// Gives one field another value. Requires: `field` < CountFields(out).
void ChangeField(scheduler::Outputs& out, std::size_t field);

}  // namespace penstock::sim
