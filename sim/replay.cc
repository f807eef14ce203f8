#include "sim/replay.h"

#include <utility>
#include <variant>

#include "common/check.h"
#include "scheduler/log/input_log.h"
#include "scheduler/log/output_digest.h"
#include "scheduler/scheduler.h"
#include "sim/checker/checker.h"

namespace penstock::sim {
namespace {

using scheduler::LoggedInput;
using scheduler::Outputs;

class Replayer {
 public:
  Replayer(const scheduler::Config& config, const ReplayHooks& hooks)
      : hooks_(hooks), core_(config), checker_(config) {}

  // Returns false if an assertion of the core failed.
  bool Apply(const LoggedInput& input) {
    ++report_.inputs;
    if (hooks_.on_input) hooks_.on_input(report_.inputs, input);
    Outputs out;
    try {
      core_.Apply(input, out);
    } catch (const BrokenInvariant& broken) {
      report_.findings_at = report_.inputs;
      report_.findings.push_back(std::string("core: ") + broken.what());
      return false;
    }
    if (hooks_.on_outputs) hooks_.on_outputs(out);
    Count(input, out);
    if (input.digest) {
      ++report_.compared;
      const bool same = *input.digest == scheduler::DigestOf(out);
      if (!same && !report_.differs_at) report_.differs_at = report_.inputs;
    }
    if (!report_.findings.empty()) return true;
    checker_.Check(input, out, core_.Inspect());
    report_.findings = checker_.findings().lines();
    report_.findings_at = report_.inputs;
    return true;
  }

  ReplayReport Take() {
    report_.preemptions = checker_.preemptions();
    return std::move(report_);
  }

 private:
  void Count(const LoggedInput& input, const Outputs& out) {
    if (std::holds_alternative<scheduler::Cancel>(input.what)) ++report_.cancels;
    if (const auto* up = std::get_if<scheduler::GroupUp>(&input.what)) {
      report_.calibration_samples += up->calibration.samples.size();
    }
    report_.plans += out.plans.size();
    for (const scheduler::Event& event : out.events) {
      const auto* tokens = std::get_if<scheduler::Tokens>(&event.what);
      if (tokens != nullptr) report_.tokens += tokens->tokens.size();
    }
  }

  const ReplayHooks& hooks_;
  scheduler::Scheduler core_;
  Checker checker_;
  ReplayReport report_;
};

}  // namespace

ReplayReport Replay(std::string_view log, const ReplayHooks& hooks) {
  const ThrowBrokenInvariants guard;
  scheduler::InputLogReader reader(log);
  const auto config = reader.ReadHeader();
  ReplayReport report;
  report.error = reader.error();
  if (!config) return report;
  if (const auto why = WhyInvalid(*config)) {
    report.error = "the log's settings cannot be run: " + *why;
    return report;
  }
  if (hooks.on_config) hooks.on_config(*config);
  Replayer replayer(*config, hooks);
  for (auto input = reader.Next(); input; input = reader.Next()) {
    if (!replayer.Apply(*input)) break;
  }
  report = replayer.Take();
  report.error = reader.error();
  return report;
}

}  // namespace penstock::sim
