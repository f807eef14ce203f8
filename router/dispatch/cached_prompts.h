// Kept prefixes as GET /cached_prompts shows them: what the scheduler says of them, with the texts
// that it does not know. Bounded by what the scheduler keeps. Thread-safe.
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
  // Of the request that made the prefix; empty when it is known no more.
  struct Owner {
    std::string tenant;
    std::string text;
  };
  void Take(const scheduler::PinChange& change, const Owner& owner, Time now);

  std::vector<CachedPrompt> List(const std::string& tenant) const;
  // Takes this one, or all, of the tenant's out of the list, at once; how many there were. The
  // scheduler, which has yet to hear of it, may still say something of them: that is passed over.
  std::size_t Forget(const std::string& tenant, std::optional<std::uint64_t> id);

  std::size_t size() const;
  std::uint64_t blocks() const;
  std::uint64_t uses() const;  // of all that were ever kept

 private:
  mutable std::mutex mutex_;
  std::map<RequestId, CachedPrompt> prompts_;  // by who made them
  std::uint64_t uses_ = 0;
};

}  // namespace penstock::router
