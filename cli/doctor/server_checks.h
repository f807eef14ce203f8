// Checks of a running server.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "cli/doctor/finding.h"
#include "cli/http_client.h"

namespace penstock::cli {

// The path of a base URL.
Finding CheckBaseUrl(const std::string& url);

// What an answer of GET /health means.
Finding CheckHealth(const std::string& url, const absl::StatusOr<HttpAnswer>& answer);

// What an answer of GET /v1/models means. `has_key`: one was sent.
Finding CheckAccess(const absl::StatusOr<HttpAnswer>& answer, bool has_key);

// All of them, by requests to the server. `ca_file`: what clients trust; empty: what the system
// trusts.
Findings CheckServer(const std::string& url, const std::string& key, const std::string& ca_file);

}  // namespace penstock::cli
