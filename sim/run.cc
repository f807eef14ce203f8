#include "sim/run.h"

#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "common/check.h"
#include "scheduler/log/input_log.h"
#include "scheduler/log/output_digest.h"
#include "sim/checker/checker.h"
#include "sim/output_fields.h"
#include "sim/random.h"
#include "sim/simulation.h"

namespace penstock::sim {
namespace {

using scheduler::Arrival;
using scheduler::Config;
using scheduler::Event;
using scheduler::Input;
using scheduler::Outputs;
using scheduler::Snapshot;
using scheduler::Tokens;

// The outputs that the model gives if each request runs alone.
class TokenOracle {
 public:
  explicit TokenOracle(const Scenario& scenario) { source_.eos_one_in = scenario.eos_one_in; }

  void Note(const Input& input) {
    const auto* arrival = std::get_if<Arrival>(&input.what);
    if (arrival == nullptr) return;
    said_[arrival->request] = {HistoryOf(arrival->prompt), 0,
                               arrival->ignore_eos ? UINT32_MAX : arrival->min_new_tokens};
  }

  void Check(const Event& event, Findings& findings) {
    const auto* tokens = std::get_if<Tokens>(&event.what);
    if (tokens == nullptr) return;
    Said& said = said_[event.request];
    for (const SampledToken& token : tokens->tokens) {
      const TokenId right = source_.After(said.history, said.count >= said.end_masked_until);
      if (token.token != right) {
        findings.Add("G3", Name(event.request) + " hears token " + std::to_string(token.token) +
                               " at " + std::to_string(said.count) + "; alone it is " +
                               std::to_string(right));
      }
      said.history = Extend(said.history, token.token);
      ++said.count;
    }
  }

 private:
  struct Said {
    History history = kEmptyHistory;
    std::uint32_t count = 0;
    std::uint32_t end_masked_until = 0;
  };

  TokenSource source_;
  std::map<RequestId, Said> said_;
};

// The settings and inputs that a reader of the input log gets.
Config ReadBack(const std::string& header) {
  return scheduler::InputLogReader(header).ReadHeader().value_or(Config{});
}

Input ReadBack(const std::string& header, const Input& input) {
  const std::string bytes = header + scheduler::EncodeInput(input);
  scheduler::InputLogReader reader(bytes);
  if (!reader.ReadHeader()) return {};
  const auto logged = reader.Next();
  return logged ? static_cast<const Input&>(*logged) : Input{};
}

class Watch final : public Observer {
 public:
  Watch(const Scenario& scenario, bool keep_log)
      : scenario_(scenario),
        oracle_(scenario),
        checker_(scenario.config),
        header_(scheduler::EncodeLogHeader(scenario.config)),
        keep_log_(keep_log) {
    if (HasTwin(scenario.seed)) twin_.emplace(ReadBack(header_));
    if (keep_log_) report_.log = header_;
  }

  bool OnApplied(const Input& input, const Outputs& out, const Snapshot& state) override {
    ++report_.inputs;
    report_.steps += out.plans.size();
    if (keep_log_) {
      report_.log += scheduler::EncodeInput(input);
      report_.log += scheduler::EncodeOutputDigest(scheduler::DigestOf(out));
    }
    oracle_.Note(input);
    for (const Event& event : out.events) {
      oracle_.Check(event, findings_);
      if (const auto* tokens = std::get_if<Tokens>(&event.what)) {
        report_.tokens += tokens->tokens.size();
      }
    }
    checker_.Check(input, out, state);
    if (twin_) {
      ApplyToTwin(input, out);
      CheckGroups(state);
      CheckDigest(out);
    }
    return findings_.empty() && checker_.findings().empty();
  }

  // The twin gets the input as the input log would return it. Seven of eight results skip the log,
  // to save time.
  void ApplyToTwin(const Input& input, const Outputs& out) {
    const bool result = std::holds_alternative<scheduler::StepDone>(input.what);
    Outputs again;
    twin_->Apply(result && report_.inputs % 8 > 0 ? input : ReadBack(header_, input), again);
    if (scheduler::EncodeOutputs(out) != scheduler::EncodeOutputs(again)) {
      findings_.Add("G9", "a second core gives other outputs for the same inputs");
    }
  }

  // The gauges of all groups are those of the core, but for waiting requests.
  void CheckGroups(const Snapshot& state) {
    Snapshot sum = state;
    for (std::uint32_t Snapshot::*const gauge : kOfGroups) sum.*gauge = 0;
    for (std::uint32_t i = 0; i < scenario_.groups.size(); ++i) {
      const Snapshot group = twin_->InspectGroup(GroupId(i));
      for (std::uint32_t Snapshot::*const gauge : kOfGroups) sum.*gauge += group.*gauge;
    }
    for (std::uint32_t Snapshot::*const gauge : kOfGroups) {
      if (sum.*gauge != state.*gauge) findings_.Add("G9", "the gauges of the groups differ");
    }
  }

  // Outputs that differ in one field have another digest. Some inputs test one field each.
  void CheckDigest(const Outputs& out) {
    if (report_.inputs % 16 > 0) return;
    Outputs other = out;
    const std::size_t fields = CountFields(other);
    const std::uint64_t dice = Mix(scenario_.seed, report_.inputs);
    ChangeField(other, dice % fields);
    if (scheduler::DigestOf(other) != scheduler::DigestOf(out)) return;
    findings_.Add("G9", "the digest does not cover field " + std::to_string(dice % fields) +
                            " of the outputs");
  }

  // An assertion of the core failed.
  void OnBroken(const std::string& what) { findings_.Add("core", what); }

  RunReport Finish(const Simulation* simulation, Simulation::End end) {
    if (end == Simulation::End::kEndless) findings_.Add("G4", "the run does not end");
    if (end == Simulation::End::kPlayed) checker_.CheckEnd(simulation->state());
    const auto keep = [this](const std::vector<std::string>& lines) {
      report_.findings.insert(report_.findings.end(), lines.begin(), lines.end());
    };
    keep(checker_.findings().lines());
    keep(findings_.lines());
    if (simulation != nullptr) {
      for (const std::string& line : simulation->violations()) {
        report_.findings.push_back("shard: " + line);
      }
    }
    report_.preemptions = checker_.preemptions();
    report_.cached_tokens = checker_.cached_tokens();
    return std::move(report_);
  }

 private:
  static constexpr std::uint32_t Snapshot::*kOfGroups[] = {
      &Snapshot::running,
      &Snapshot::retiring,
      &Snapshot::blocks_free,
      &Snapshot::blocks_used,
      &Snapshot::blocks_cached,
      &Snapshot::blocks_retiring,
      &Snapshot::blocks_total,
      &Snapshot::window_blocks_free,
      &Snapshot::window_blocks_used,
      &Snapshot::window_blocks_cached,
      &Snapshot::window_blocks_retiring,
      &Snapshot::window_blocks_total,
      &Snapshot::plans_in_flight,
  };

  const Scenario& scenario_;
  TokenOracle oracle_;
  Checker checker_;
  const std::string header_;  // of the input log
  std::optional<scheduler::Scheduler> twin_;
  const bool keep_log_;
  Findings findings_;
  RunReport report_;
};

}  // namespace

bool HasTwin(std::uint64_t seed) { return Mix(seed, 24) % 4 == 0; }

RunReport RunScenario(const Scenario& scenario, bool keep_log) {
  const ThrowBrokenInvariants guard;
  Watch watch(scenario, keep_log);
  try {
    Simulation simulation(scenario, watch);
    const Simulation::End end = simulation.Run();
    return watch.Finish(&simulation, end);
  } catch (const BrokenInvariant& broken) {
    watch.OnBroken(broken.what());
    return watch.Finish(nullptr, Simulation::End::kStoppedByObserver);
  }
}

}  // namespace penstock::sim
