#include "tools/plan/plan_command.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "common/exit_codes.h"
#include "common/status.h"
#include "tools/plan/explain.h"
#include "tools/plan/group_type.h"
#include "tools/plan/launcher_config.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/plan_report.h"
#include "tools/plan/search.h"
#include "tools/replay/report.h"

namespace penstock::plan {
namespace {

// Why no setting is good enough, with the best that there is.
absl::Status NoPlan(const PlanOptions& options, const Space& space) {
  Goal most = options.goal;
  most.aim = Aim::kThroughput;
  most.demand.reset();
  PENSTOCK_ASSIGN_OR_RETURN(const Found found, Search(space, options.load, most, options.threads));
  const std::string goal = Describe(options.goal);
  if (found.plans.empty()) {
    return absl::FailedPreconditionError("no setting meets the objective at any rate: " + goal);
  }
  const Plan& best = found.plans.front();
  return absl::FailedPreconditionError(absl::StrFormat(
      "no setting meets the objective: %s; the highest rate is %.3g requests/s (%s)", goal,
      best.goodput, best.setting.Text()));
}

absl::Status Publish(const Report& report) {
  const PlanOptions& options = *report.options;
  if (options.json != "-" && options.write != "-") std::fputs(ToText(report).c_str(), stdout);
  if (!options.json.empty()) {
    PENSTOCK_RETURN_IF_ERROR(replay::WriteText(options.json, ToJson(report)));
  }
  if (options.write.empty()) return absl::OkStatus();
  return replay::WriteText(options.write, LauncherConfig(options, report.found.plans.front()));
}

absl::Status Make(PlanOptions& options) {
  PENSTOCK_ASSIGN_OR_RETURN(GroupTypes groups, MakeGroupTypes(options.model, options.machines,
                                                              options.ranks, options.slots));
  Space space = std::move(options.space);
  space.types = std::move(groups.types);
  Report report{&options, {}, std::move(groups.left_out), {}};
  PENSTOCK_ASSIGN_OR_RETURN(report.found,
                            Search(space, options.load, options.goal, options.threads));
  if (report.found.plans.empty()) return NoPlan(options, space);
  if (options.changes) {
    report.changes =
        WhatWouldChange(report.found.plans, options.load, options.goal, options.threads);
  }
  return Publish(report);
}

}  // namespace

int PlanCommand(const char* program, int argc, const char* const* argv) {
  CommandLine line = ReadCommandLine(program, argc, argv);
  if (!line.options.ok()) {
    if (absl::IsCancelled(line.options.status())) return line.exit_code;
    return replay::Complain(program, Message(line.options.status()), line.exit_code);
  }
  const absl::Status status = Make(*line.options);
  return status.ok() ? kExitOk
                     : replay::Complain(program, Message(status), replay::ExitCodeOf(status));
}

}  // namespace penstock::plan
