// What an answer of the hub that is no success means for the user who starts a server.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <optional>
#include <string>

#include "launcher/hub/http_transfers.h"
#include "launcher/hub/hub_settings.h"

namespace penstock::hub {

// One line with what to do: NotFound, PermissionDenied, Unavailable. `what` is a file of the model,
// or empty for the model itself.
absl::Status HubError(const HubSettings& settings, const std::string& repo, const std::string& what,
                      const HttpResponse& response);

// Whether asking again may help: no answer, 408, 429 and 5xx.
bool IsTransient(const HttpResponse& response);

// How long to wait before `url` is requested again, after `failures` failed tries. The hub may ask
// for a time; otherwise it is 0.2 s, doubled after each failure. Logs the failure as a warning.
// Returns nullopt when there were too many failures.
std::optional<std::chrono::milliseconds> RetryDelay(const std::string& url, int failures,
                                                    const HttpResponse& response);

}  // namespace penstock::hub
