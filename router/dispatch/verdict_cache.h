// An LRU cache of verdicts on grammars, by the grammar as the client sent it.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::router {

template <typename Verdict>
class VerdictCache {
 public:
  VerdictCache(std::size_t entries, std::size_t bytes) : entries_(entries), bytes_(bytes) {}

  std::optional<Verdict> Find(std::string_view key) {
    for (auto entry = kept_.begin(); entry != kept_.end(); ++entry) {
      if (entry->key != key) continue;
      kept_.splice(kept_.begin(), kept_, entry);
      return kept_.front().verdict;
    }
    return std::nullopt;
  }

  // `size`: of the verdict, in bytes. An entry of more than an eighth of the cache is not kept.
  void Keep(std::string key, Verdict verdict, std::size_t size) {
    size += key.size();
    if (size > bytes_ / 8) return;
    used_ += size;
    kept_.push_front({std::move(key), std::move(verdict), size});
    while (kept_.size() > entries_ || used_ > bytes_) {
      used_ -= kept_.back().size;
      kept_.pop_back();
    }
  }

 private:
  struct Entry {
    std::string key;
    Verdict verdict;
    std::size_t size = 0;
  };

  const std::size_t entries_;
  const std::size_t bytes_;
  std::size_t used_ = 0;
  std::list<Entry> kept_;  // the latest first
};

}  // namespace penstock::router
