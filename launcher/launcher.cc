#include "launcher/launcher.h"

#include <signal.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "common/exit_codes.h"
#include "common/log.h"
#include "common/options/log_setup.h"
#include "common/status.h"
#include "launcher/console.h"
#include "launcher/launch_plan.h"
#include "launcher/machine.h"
#include "launcher/model_source.h"
#include "launcher/preflight.h"
#include "launcher/router_check.h"
#include "launcher/runtime_environment.h"
#include "launcher/shard_output.h"
#include "launcher/socket_dir.h"
#include "launcher/supervisor.h"
#include "launcher/tgi_rules.h"

namespace penstock::launcher {
namespace {

// Time after the drain for a router that hangs.
constexpr std::chrono::seconds kDrainMargin(5);
constexpr std::chrono::seconds kShardStop(10);
// After a failure, time for the router to answer its clients.
constexpr std::chrono::seconds kFailureStop(5);
// More than a process needs between closing its sockets and its end.
constexpr std::chrono::milliseconds kReport(500);
// Before the first restart of the router: its port is closed meanwhile.
constexpr std::chrono::milliseconds kRouterPause(50);
// Shorter than the time between two deliberate Ctrl-C.
constexpr std::chrono::milliseconds kSameSignal(250);

absl::StatusOr<UniqueFd> BlockSignals() {
  ::signal(SIGPIPE,
           SIG_IGN);  // a reader of the log that ends must not end the server
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  UniqueFd fd;
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) == 0) {
    fd = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  if (!fd.open()) return absl::ErrnoToStatus(errno, "signalfd");
  return fd;
}

Timeouts MakeTimeouts(const options::Values& values) {
  Timeouts timeouts;
  timeouts.startup = values.GetDuration("startup-timeout");
  timeouts.drain = values.GetDuration("graceful-termination-timeout") + kDrainMargin;
  timeouts.stop = kShardStop;
  timeouts.rank = values.GetDuration("rank-timeout");
  timeouts.report = kReport;
  timeouts.failure = kFailureStop;
  timeouts.same_signal = kSameSignal;
  timeouts.router_restart.first_pause = kRouterPause;
  // The code of a model may end its child at any time.
  timeouts.restart.single = UsesTransformers(values) || values.GetString("restart") == "always";
  return timeouts;
}

absl::StatusOr<Outcome> Supervise(const options::Values& values, Machine machine,
                                  Console& console) {
  PENSTOCK_ASSIGN_OR_RETURN(const UniqueFd signals, BlockSignals());
  PENSTOCK_ASSIGN_OR_RETURN(const SocketDir sockets,
                            SocketDir::Create(SocketBase(values.GetString("socket-dir"))));
  const std::string& given_prefix = values.GetString("shard-uds-path");
  machine.socket_prefix = given_prefix.empty() ? sockets.SocketPrefix() : given_prefix;
  PENSTOCK_ASSIGN_OR_RETURN(LaunchPlan plan, MakeLaunchPlan(values, machine));
  if (const Problem problem = CheckRouter(plan.router); !problem.error.empty()) {
    return Outcome{.exit_code = problem.exit_code, .error = problem.error};
  }
  Supervisor supervisor(std::move(plan.shards), std::move(plan.router), MakeTimeouts(values),
                        signals.get(), console);
  return supervisor.Run();
}

// Applies options that set other options, and --env. Returns the error, if any.
Problem Prepare(options::Values& values) {
  const absl::Status status =
      values.GetBool("json-output") ? values.Set("log-format", "json") : absl::OkStatus();
  options::ConfigureLog(values, "launcher");
  if (!status.ok()) return {kExitUsage, Message(status)};
  if (values.GetBool("env")) log::Info(RuntimeEnvironment(values.program().profile != nullptr));
  const absl::Status rules =
      ApplyTgiRules(values, UsableGpus(std::getenv("CUDA_VISIBLE_DEVICES")).size());
  if (!rules.ok()) return {kExitUsage, Message(rules)};
  return {};
}

// Only if the router, which usually logs it, is not started.
void WarnOfRevision(const options::Values& values) {
  if (!values.IsSet("revision") || !values.GetString("hub-model-id").empty()) return;
  log::Warn("--revision " + values.GetString("revision") +
            " has no effect: the model is the local folder " + values.GetString("model-id"));
}

}  // namespace

std::string BackendLine(const options::Values& values) {
  constexpr std::string_view kLabel = "# backend that runs: ";
  std::error_code ignored;
  if (!std::filesystem::is_directory(values.GetString("model-id"), ignored)) return "";
  if (UsesSimulatedShards(values)) return "";
  absl::StatusOr<Machine> machine = FindMachine();
  if (!machine.ok()) return "";
  const auto said = AskShard(values, *std::move(machine), "--print-config");
  if (!said.ok()) return std::string(kLabel) + "none: " + Message(said.status()) + "\n";
  const std::size_t begin = said->text.rfind(kLabel);
  if (begin == std::string::npos) return "";
  return said->text.substr(begin, said->text.find('\n', begin) - begin) + "\n";
}

int Launch(options::Values values, const ServingSource& serving) {
  Problem problem = Prepare(values);
  serving.Tell(values);
  if (values.GetBool("env") && !values.HasValue("model-id")) return kExitOk;
  Console console(values);
  absl::StatusOr<Machine> machine = FindMachine();
  if (!machine.ok() && problem.error.empty()) problem = {kExitFailure, Message(machine.status())};
  if (problem.error.empty()) {
    const absl::Status model = ResolveModelId(values);
    const int code = absl::IsInvalidArgument(model) ? kExitUsage : kExitModel;
    problem = model.ok() ? CheckBeforeStart(values, *machine) : Problem{code, Message(model)};
  }
  if (problem.error.empty()) {
    for (const std::string& warning : DeviceWarnings(values, *machine)) log::Warn(warning);
  }
  if (problem.error.empty() && values.GetBool("download-only")) {
    WarnOfRevision(values);
    std::puts(values.GetString("model-id").c_str());
    return kExitOk;
  }
  if (!problem.error.empty()) {
    console.Report({.exit_code = problem.exit_code, .error = problem.error});
    return problem.exit_code;
  }
  absl::StatusOr<Outcome> outcome = Supervise(values, *std::move(machine), console);
  if (!outcome.ok()) {
    const int code = absl::IsInvalidArgument(outcome.status()) ? kExitUsage : kExitFailure;
    outcome = Outcome{.exit_code = code, .error = Message(outcome.status())};
  }
  console.Report(*outcome);
  return outcome->exit_code;
}

}  // namespace penstock::launcher
