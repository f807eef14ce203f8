// The origin of models and the folder of the cache. Variables and options are those of the Hugging
// Face libraries with the same meaning, so Penstock and Python can share a cache.
#pragma once

#include <functional>
#include <string>

namespace penstock::hub {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // without a slash at the end
  std::string token;                                // empty: anonymous
  std::string cache;                                // folder of models--org--name folders
  std::string revision = "main";                    // branch, tag or commit
  bool offline = false;                             // never open a connection
  bool code = false;                                // fetch the code of a model, too: *.py
};

using Environment = std::function<const char*(const char* name)>;

// HF_ENDPOINT; HF_TOKEN, HF_API_TOKEN, HUGGING_FACE_HUB_TOKEN, else the file HF_TOKEN_PATH
// ($HF_HOME/token); HF_HUB_OFFLINE; HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, else $HF_HOME/hub, where
// HF_HOME is $XDG_CACHE_HOME/huggingface or ~/.cache/huggingface by default.
HubSettings SettingsFromEnvironment(const Environment& environment);

}  // namespace penstock::hub
