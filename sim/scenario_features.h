// What some scenarios have and others do not: features of requests and groups. Each function draws
// whether the scenario has it.
#pragma once

#include "sim/random.h"
#include "sim/scenario.h"

namespace penstock::sim {

// Contrastive search in some requests, sometimes where no group offers it.
void DrawContrastive(Random& random, Scenario& scenario);
// Forced tokens in two of three scenarios; groups may differ.
void DrawForced(Scenario& scenario);
// Layers with a window in about a third of the scenarios. Their pool holds at least one sequence,
// in some scenarios just one.
void DrawWindows(Random& random, Scenario& scenario);
// RoPE that depends on the length of the text, with an original length that some texts pass.
void DrawLengthRule(Random& random, Scenario& scenario);
// Recurrent models in a quarter of the scenarios, with few snapshots.
void DrawSnapshots(Random& random, Scenario& scenario);
// Most servers recover the requests of a lost group; some wait for a moment only. Groups may differ
// in arithmetic. Some requests end every group that starts them.
void DrawRecovery(Scenario& scenario);
// Several accounts in a third of the scenarios, with weights that seldom change.
void DrawAccounts(Scenario& scenario);
// The order learned, with short waits and quanta, and predictions of the router, in a fifth of the
// scenarios. In most of them requests that were due yield to others.
void DrawLearned(Scenario& scenario);

}  // namespace penstock::sim
