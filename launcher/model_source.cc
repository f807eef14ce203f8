#include "launcher/model_source.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

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

// A signal ends a server with success, but --download-only with failure: the model is incomplete.
void EndServer(int) { ::_exit(kExitOk); }
void EndDownload(int signal) { ::_exit(kSignalExit + signal); }

// In a container, the first process ignores signals that have no handler.
class EndOnSignals {
 public:
  explicit EndOnSignals(void (*end)(int)) {
    struct sigaction action = {};
    action.sa_handler = end;
    for (std::size_t i = 0; i < kCount; ++i) ::sigaction(kSignals[i], &action, &before_[i]);
  }
  ~EndOnSignals() {
    for (std::size_t i = 0; i < kCount; ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  EndOnSignals(const EndOnSignals&) = delete;
  EndOnSignals& operator=(const EndOnSignals&) = delete;

 private:
  static constexpr std::size_t kCount = 3;
  static constexpr int kSignals[kCount] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[kCount];
};

hub::HubSettings Settings(const options::Values& values) {
  hub::HubSettings settings = hub::SettingsFromEnvironment(&::getenv);
  const std::string& cache = values.GetString("huggingface-hub-cache");
  if (!cache.empty()) settings.cache = cache;
  settings.revision = values.GetString("revision");
  return settings;
}

}  // namespace

absl::Status ResolveModelId(options::Values& values) {
  const std::string model = values.GetString("model-id");
  const hub::Need need = UsesSimulatedShards(values) ? hub::Need::kTokenizer : hub::Need::kWeights;
  ProgressText text(ProgressInterval());
  const auto progress = [&](std::uint64_t done, std::uint64_t total) {
    const ProgressNotice notice{"fetching " + model, done, total, "bytes"};
    const auto line = text.Line(model, notice, std::chrono::steady_clock::now());
    if (line.has_value()) log::Info(*line);
  };
  const EndOnSignals guard(values.GetBool("download-only") ? &EndDownload : &EndServer);
  PENSTOCK_ASSIGN_OR_RETURN(const hub::ResolvedModel resolved,
                            hub::ResolveModel(Settings(values), model, need, progress));
  if (!resolved.warning.empty()) log::Warn(resolved.warning);
  if (resolved.folder == model) return absl::OkStatus();
  log::Info(model + ", commit " + resolved.commit + ": " + resolved.folder);
  PENSTOCK_RETURN_IF_ERROR(values.Set("hub-model-id", model));
  PENSTOCK_RETURN_IF_ERROR(values.Set("hub-commit", resolved.commit));
  return values.Set("model-id", resolved.folder);
}

}  // namespace penstock::launcher
