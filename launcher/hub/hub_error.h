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

// How long to wait before try number `failures` + 1 of `url`: as long as the hub asks for, else
// 0.2 s, doubled after each failure. Logs it as a warning. nullopt: the caller gives up.
std::optional<std::chrono::milliseconds> RetryDelay(const std::string& url, int failures,
                                                    const HttpResponse& response);

}  // namespace penstock::hub
