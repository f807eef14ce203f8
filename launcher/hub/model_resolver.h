// Turns --model-id into a folder: the folder itself, or a snapshot in the Hugging Face cache.
// Fetches missing files from the hub.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string>

#include "launcher/hub/file_fetcher.h"
#include "launcher/hub/hub_settings.h"

namespace penstock::hub {

enum class Need : std::uint8_t { kWeights, kTokenizer };  // simulated shards read no weights

struct ResolvedModel {
  std::string folder;
  std::string commit;   // empty for a folder
  std::string warning;  // one line, if the hub could not be reached and the cache was used
};

// An existing folder is used as it is. Otherwise `model` must be a repo id whose first part does
// not exist here, else it is taken for a misspelt folder. A commit that is complete in the cache
// needs no connection. Offline, only the cache is used. In all other cases the hub tells the commit
// of the revision, and missing files are fetched. If the hub cannot be reached, a complete snapshot
// in the cache is used with a warning.
//
// Blocks. Errors are one line that says what to do.
absl::StatusOr<ResolvedModel> ResolveModel(const HubSettings& settings, const std::string& model,
                                           Need need, const Progress& progress);

}  // namespace penstock::hub
