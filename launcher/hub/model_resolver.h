// Turns what --model-id says into a folder: itself, or a snapshot in the Hugging Face cache, which
// is filled from the hub where something is missing.
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
  std::string commit;   // empty for a folder of the user's
  std::string warning;  // one line, when the cache had to do although the hub was asked
};

// A folder that exists is taken as it is. Else `model` must be a repo id, and
//   * a commit whose files are all in the cache is used without a question to the hub,
//   * offline, what the cache has is used,
//   * otherwise the hub is asked which commit the revision stands at, and missing files are
//     fetched; if it cannot be reached, a whole snapshot in the cache is used with a warning.
// Blocks until it is done. Errors are one line that says what to do.
absl::StatusOr<ResolvedModel> ResolveModel(const HubSettings& settings, const std::string& model,
                                           Need need, const Progress& progress);

}  // namespace penstock::hub
