#include "launcher/model_source.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "common/exit_codes.h"
#include "common/log.h"
#include "common/notify.h"
#include "common/status.h"
#include "launcher/console.h"
#include "launcher/hub/model_resolver.h"
#include "launcher/launch_plan.h"
#include "launcher/progress_text.h"

namespace penstock::launcher {
namespace {

constexpr int kSignalExit = 128;  // plus the signal, as shells count

// While it exists, SIGINT, SIGTERM and SIGHUP end the process, with a line in the log. A thread
// waits for them: a handler may not log, and the first process of a container ignores signals
// without one.
class EndOnSignals {
 public:
  // A signal ends a server with success, but --download-only with failure: the model is incomplete.
  explicit EndOnSignals(bool download_only) {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, kRelease}) sigaddset(&signals_, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    waiter_ = std::thread([this, download_only] { Wait(download_only); });
  }
  ~EndOnSignals() {
    ::pthread_kill(waiter_.native_handle(), kRelease);
    waiter_.join();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  EndOnSignals(const EndOnSignals&) = delete;
  EndOnSignals& operator=(const EndOnSignals&) = delete;

 private:
  static constexpr int kRelease = SIGUSR1;

  void Wait(bool download_only) const {
    int signal = 0;
    ::sigwait(&signals_, &signal);
    if (signal == kRelease) return;
    log::Info("stopping: received SIG" + std::string(::sigabbrev_np(signal)) +
              " before the model was complete");
    ::_exit(download_only ? kSignalExit + signal : kExitOk);
  }

  sigset_t signals_;
  sigset_t before_;
  std::thread waiter_;
};

hub::HubSettings Settings(const options::Values& values) {
  hub::HubSettings settings = hub::SettingsFromEnvironment(&::getenv);
  const std::string& cache = values.GetString("huggingface-hub-cache");
  if (!cache.empty()) settings.cache = cache;
  settings.revision = values.GetString("revision");
  settings.code = UsesTransformers(values) && values.GetBool("trust-remote-code");
  return settings;
}

}  // namespace

std::optional<std::string> NameOfFolder(const std::string& path) {
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    if (!part.empty() && part != "." && part != "..") return std::nullopt;
  }
  std::error_code error;
  const std::string name = std::filesystem::canonical(path, error).filename();
  if (name.empty()) return std::nullopt;
  return name;
}

absl::Status ResolveModelId(options::Values& values) {
  const std::string model = values.GetString("model-id");
  const hub::Need need = UsesSimulatedShards(values) ? hub::Need::kTokenizer : hub::Need::kWeights;
  ProgressText text(ProgressInterval());
  const auto progress = [&](std::uint64_t done, std::uint64_t total) {
    const ProgressNotice notice{"fetching " + model, done, total, "bytes"};
    const auto line = text.Line(model, notice, std::chrono::steady_clock::now());
    if (line.has_value()) log::Info(*line);
  };
  const EndOnSignals guard(values.GetBool("download-only"));
  PENSTOCK_ASSIGN_OR_RETURN(const hub::ResolvedModel resolved,
                            hub::ResolveModel(Settings(values), model, need, progress));
  if (!resolved.warning.empty()) log::Warn(resolved.warning);
  if (resolved.folder == model) {
    const std::optional<std::string> name = NameOfFolder(model);
    if (!name || values.HasValue("served-model-name")) return absl::OkStatus();
    return values.Set("served-model-name", *name);
  }
  log::Info(model + ", commit " + resolved.commit + ": " + resolved.folder);
  PENSTOCK_RETURN_IF_ERROR(values.Set("hub-model-id", model));
  PENSTOCK_RETURN_IF_ERROR(values.Set("hub-commit", resolved.commit));
  return values.Set("model-id", resolved.folder);
}

}  // namespace penstock::launcher
