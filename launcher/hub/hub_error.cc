#include "launcher/hub/hub_error.h"

#include <algorithm>
#include <charconv>

#include "common/json_text.h"
#include "common/log.h"
#include "common/status.h"

namespace penstock::hub {
namespace {

constexpr int kTries = 6;
constexpr std::chrono::milliseconds kFirstDelay(200);
constexpr std::chrono::seconds kLongestDelay(300);

constexpr long kUnauthorized = 401;
constexpr long kForbidden = 403;
constexpr long kNotFound = 404;
constexpr long kTimeout = 408;
constexpr long kTooMany = 429;

std::string TokenAdvice(const HubSettings& settings) {
  return settings.token.empty()
             ? "set HF_TOKEN to a token of an account that may read it"
             : "the token in HF_TOKEN belongs to an account that may not read it";
}

std::chrono::milliseconds Pause(int failures, const HttpResponse& response) {
  const std::string asked = response.Header("retry-after");
  int seconds = 0;
  if (std::from_chars(asked.data(), asked.data() + asked.size(), seconds).ec == std::errc() &&
      seconds >= 0) {
    return std::min<std::chrono::milliseconds>(std::chrono::seconds(seconds), kLongestDelay);
  }
  return kFirstDelay * (1 << std::max(0, failures - 1));
}

std::string Trouble(const std::string& url, const HttpResponse& response) {
  if (!response.refused.empty()) return url + ": " + response.refused;
  if (!response.status.ok()) return Message(response.status);
  return url + ": answer " + std::to_string(response.code);
}

}  // namespace

absl::Status HubError(const HubSettings& settings, const std::string& repo, const std::string& what,
                      const HttpResponse& response) {
  const std::string model = "--model-id " + repo;
  const std::string code = response.Header("x-error-code");
  const std::string answer = "answer " + std::to_string(response.code);
  if (!response.refused.empty()) {
    return absl::UnavailableError(model + ": " + what + ": " + settings.endpoint + ": " +
                                  response.refused);
  }
  if (!response.status.ok()) {
    const std::string why(response.status.message());
    if (what.empty()) {
      return absl::UnavailableError(
          model + ": there is no such folder here, and the hub cannot be reached: " + why +
          "; without a network give the folder of a model");
    }
    return absl::UnavailableError(model + ": " + why);
  }
  if (code == "GatedRepo") {
    return absl::PermissionDeniedError(model + " is gated: accept its terms at " +
                                       settings.endpoint + "/" + repo + "; " +
                                       TokenAdvice(settings));
  }
  if (code == "RevisionNotFound") {
    return absl::NotFoundError(model + ": --revision " + settings.revision +
                               " is no branch, tag or commit of it");
  }
  if (code == "EntryNotFound" || (response.code == kNotFound && !what.empty())) {
    return absl::NotFoundError(model + ": it has no file " + what);
  }
  if (response.code == kUnauthorized || response.code == kForbidden || response.code == kNotFound) {
    return absl::NotFoundError(model + ": neither a folder here nor a model at " +
                               settings.endpoint + " (" + answer +
                               "). Check the spelling; if it is private, " + TokenAdvice(settings));
  }
  if (response.code == kTooMany) {
    return absl::UnavailableError(model + ": " + settings.endpoint +
                                  " limits requests (answer 429); try again later, or set HF_TOKEN "
                                  "to get a higher limit");
  }
  return absl::UnavailableError(model + (what.empty() ? "" : ": " + what) + ": " +
                                settings.endpoint + " gave " + answer);
}

bool IsTransient(const HttpResponse& response) {
  return !response.status.ok() || response.code == kTimeout || response.code == kTooMany ||
         response.code >= 500;
}

std::optional<std::chrono::milliseconds> RetryDelay(const std::string& url, int failures,
                                                    const HttpResponse& response) {
  if (failures >= kTries) return std::nullopt;
  const std::chrono::milliseconds delay = Pause(failures, response);
  const std::string seconds = NumberText(std::chrono::duration<double>(delay).count());
  log::Warn(Trouble(url, response) + "; asking again in " + seconds + " s, try " +
            std::to_string(failures + 1) + " of " + std::to_string(kTries));
  return delay;
}

}  // namespace penstock::hub
