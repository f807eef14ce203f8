#include "cli/model_folder.h"

#include <cstdlib>

#include "common/status.h"
#include "launcher/hub/missing_folder.h"
#include "launcher/hub/model_resolver.h"

namespace penstock::cli {

hub::HubSettings OfflineSettings(const options::Values& values) {
  hub::HubSettings settings = hub::SettingsFromEnvironment(&::getenv);
  const std::string& cache = values.GetString("huggingface-hub-cache");
  if (!cache.empty()) settings.cache = cache;
  settings.revision = values.GetString("revision");
  settings.offline = true;
  return settings;
}

absl::StatusOr<std::string> FindModelFolder(const options::Values& values,
                                            const std::string& model) {
  const hub::HubSettings settings = OfflineSettings(values);
  const auto found =
      hub::ResolveModel(settings, model, hub::Need::kWeights, [](std::uint64_t, std::uint64_t) {});
  if (found.ok()) return found->folder;
  // The resolver would say that it is offline, which is not the user's choice.
  if (!absl::IsNotFound(found.status()) || hub::MissingFolder(model)) return found.status();
  return absl::UnavailableError("--model-id " + model + ": is not complete in the cache " +
                                settings.cache + "; `penstock serve " + model +
                                " --download-only` fetches it");
}

}  // namespace penstock::cli
