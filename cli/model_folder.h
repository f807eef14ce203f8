// MODEL of a command: a folder, or a model of the Hugging Face cache. Nothing is downloaded.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/options/values.h"
#include "launcher/hub/hub_settings.h"

namespace penstock::cli {

// As the launcher would use them, but offline.
hub::HubSettings OfflineSettings(const options::Values& values);

// The folder of the model. Unavailable: a model of the hub that is not complete in the cache.
absl::StatusOr<std::string> FindModelFolder(const options::Values& values,
                                            const std::string& model);

}  // namespace penstock::cli
