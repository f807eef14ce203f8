#include "cli/doctor/server_checks.h"

#include <cstdlib>
#include <optional>

#include "cli/chat_reply.h"
#include "common/status.h"

namespace penstock::cli {
namespace {

std::string WithoutSlash(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  return path;
}

std::string Root(const bench::ServerUrl& url) {
  return (url.tls ? "https://" : "http://") + url.HostHeader();
}

bool IsRefused(const absl::StatusOr<HttpAnswer>& answer) {
  return answer.ok() && (answer->status == 401 || answer->status == 403);
}

// OpenAI's clients add "/chat/completions" to it.
Finding CheckVariable(const std::string& text) {
  const auto url = bench::ParseServerUrl(text);
  if (url && WithoutSlash(url->target) == "/v1") return Good("OPENAI_BASE_URL ends in /v1");
  return Bad("OPENAI_BASE_URL=" + text + " does not end in /v1",
             url ? "OPENAI_BASE_URL=" + Root(*url) + "/v1" : "http://HOST:PORT/v1");
}

HttpCall HealthCall() {
  HttpCall call;
  call.target = "/health";
  return call;
}

// A problem if the server answers with TLS where the URL has none, or the other way round.
std::optional<Finding> CheckScheme(const bench::ServerUrl& url) {
  bench::ServerUrl other = url;
  other.tls = !url.tls;
  const auto answer = HttpClient(other, "", {.insecure = true}).Call(HealthCall());
  if (!answer.ok() || answer->status == 400) return std::nullopt;
  return Bad(Root(url) + ": the server speaks " + (url.tls ? "plain HTTP" : "HTTPS") + " there",
             Root(other));
}

// Whether clients accept the certificate.
Finding CheckTrust(const bench::ServerUrl& url, const std::string& ca_file) {
  const auto answer = HttpClient(url, "", {.ca_file = ca_file}).Call(HealthCall());
  if (answer.ok()) return Good("clients accept the certificate");
  return Bad(Root(url) + ": " + Message(answer.status()),
             "--ca-file with its authority's certificate, here and for `penstock chat`, or a "
             "certificate that the system trusts");
}

}  // namespace

Finding CheckBaseUrl(const std::string& text) {
  const auto url = bench::ParseServerUrl(text);
  if (!url) return Bad("--url " + text + " is no URL", "http://HOST:PORT");
  const std::string path = WithoutSlash(url->target);
  if (path == "/v1") return Good("the base URL of OpenAI's clients is " + text);
  if (path.empty()) {
    return Good("the base URL of OpenAI's clients is " + Root(*url) + "/v1, with /v1");
  }
  return Bad(
      "the base URL " + text + " does not end in /v1, so clients ask routes that do not exist",
      Root(*url) + "/v1");
}

Finding CheckHealth(const std::string& url, const absl::StatusOr<HttpAnswer>& answer) {
  if (!answer.ok()) {
    return Bad(
        url + " cannot be reached: " + Message(answer.status()),
        "the address that the launcher prints, or `penstock serve --demo`, which starts a server; "
        "--hostname 0.0.0.0 listens for other machines");
  }
  if (answer->status == 200) return Good(url + " is ready");
  return Bad(url + " is not ready: GET /health gives " + std::to_string(answer->status) + " " +
                 ErrorMessage(answer->body),
             "waiting until the model is loaded, and the log of the launcher");
}

Finding CheckAccess(const absl::StatusOr<HttpAnswer>& answer, bool has_key) {
  if (!answer.ok()) return Bad("GET /v1/models: " + Message(answer.status()), "the server's log");
  if (IsRefused(answer)) {
    return has_key ? Bad("the server refuses the key", "another --api-key")
                   : Bad("the server needs a key", "--api-key KEY");
  }
  if (answer->status == 200) return Good("GET /v1/models is answered");
  return Bad(
      "GET /v1/models gives " + std::to_string(answer->status) + " " + ErrorMessage(answer->body),
      "another --url: it may be no server of Penstock");
}

Findings CheckServer(const std::string& text, const std::string& key, const std::string& ca_file) {
  Findings findings = {CheckBaseUrl(text)};
  const char* variable = std::getenv("OPENAI_BASE_URL");
  if (variable != nullptr && *variable != '\0') findings.push_back(CheckVariable(variable));
  auto url = bench::ParseServerUrl(text);
  if (!url) return findings;
  url->target.clear();
  const HttpClient client(*url, key, {.insecure = true});
  HttpCall call = HealthCall();
  const auto health = client.Call(call);
  const bool unclear = !health.ok() || health->status == 400;
  const auto scheme = unclear ? CheckScheme(*url) : std::nullopt;
  findings.push_back(scheme ? *scheme : CheckHealth(Root(*url), health));
  if (!findings.back().ok()) return findings;
  if (url->tls) findings.push_back(CheckTrust(*url, ca_file));
  // Penstock lists its models without a key, so ask a route that needs one first.
  call.target = "/requests/none";
  auto answer = client.Call(call);
  if (!IsRefused(answer)) {
    call.target = "/v1/models";
    answer = client.Call(call);
  }
  findings.push_back(CheckAccess(answer, !key.empty()));
  return findings;
}

}  // namespace penstock::cli
