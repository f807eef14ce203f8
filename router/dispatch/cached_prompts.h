// The pinned prefixes that GET /cached_prompts shows. Adds their texts, which the scheduler does
// not know, to what it reports. The scheduler bounds how many there are. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "router/engine.h"
#include "scheduler/output.h"

namespace penstock::router {

class CachedPromptList {
 public:
  // The request that made the prefix; empty when that request is no longer known.
  struct Owner {
    std::string tenant;
    std::string text;
  };
  void Take(const scheduler::PinChange& change, const Owner& owner, Time now);

  std::vector<CachedPrompt> List(const std::string& tenant) const;
  // Removes one or all of the tenant's prompts and returns how many. Later reports of the scheduler
  // about them, from before it knew, are ignored.
  std::size_t Forget(const std::string& tenant, std::optional<std::uint64_t> id);

 private:
  mutable std::mutex mutex_;
  std::map<RequestId, CachedPrompt> prompts_;  // by who made them
};

}  // namespace penstock::router
