#include "launcher/hub/hub_settings.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <initializer_list>

namespace penstock::hub {
namespace {

std::string FirstSet(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = environment(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

bool IsTrue(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text == "1" || text == "ON" || text == "YES" || text == "TRUE";
}

std::string HomeOfCaches(const Environment& environment) {
  const std::string home = FirstSet(environment, {"HF_HOME"});
  if (!home.empty()) return home;
  const std::string caches = FirstSet(environment, {"XDG_CACHE_HOME"});
  if (!caches.empty()) return caches + "/huggingface";
  return FirstSet(environment, {"HOME"}) + "/.cache/huggingface";
}

std::string TokenOfFile(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  file >> token;
  return token;
}

}  // namespace

HubSettings SettingsFromEnvironment(const Environment& environment) {
  HubSettings settings;
  const std::string home = HomeOfCaches(environment);
  const std::string endpoint = FirstSet(environment, {"HF_ENDPOINT"});
  if (!endpoint.empty()) settings.endpoint = endpoint;
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  settings.token = FirstSet(environment, {"HF_TOKEN", "HF_API_TOKEN", "HUGGING_FACE_HUB_TOKEN"});
  if (settings.token.empty()) {
    const std::string path = FirstSet(environment, {"HF_TOKEN_PATH"});
    settings.token = TokenOfFile(path.empty() ? home + "/token" : path);
  }
  settings.cache = FirstSet(environment, {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  if (settings.cache.empty()) settings.cache = home + "/hub";
  settings.offline = IsTrue(FirstSet(environment, {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}));
  return settings;
}

}  // namespace penstock::hub
