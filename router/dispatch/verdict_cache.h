// What checks of grammars find (grammar_checker.h), and an LRU cache of it by Grammar::source.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "common/plan/grammar.h"

namespace penstock::router {

struct GrammarRefusal {
  bool busy = false;    // nothing is known of the grammar: too many others are being checked
  std::string message;  // for the client
  std::string field = "grammar";  // of the request
};
using GrammarVerdict = std::variant<GrammarSpec, GrammarRefusal>;

class VerdictCache {
 public:
  VerdictCache(std::size_t entries, std::size_t bytes) : entries_(entries), bytes_(bytes) {}

  std::optional<GrammarVerdict> Find(std::string_view source) {
    for (auto entry = kept_.begin(); entry != kept_.end(); ++entry) {
      if (entry->source != source) continue;
      kept_.splice(kept_.begin(), kept_, entry);
      return kept_.front().verdict;
    }
    return std::nullopt;
  }

  // Does not keep a grammar without a source, or an entry of more than an eighth of the cache.
  void Keep(std::string source, GrammarVerdict verdict) {
    const auto* spec = std::get_if<GrammarSpec>(&verdict);
    const std::size_t size =
        source.size() +
        (spec != nullptr ? spec->source.size() : std::get<GrammarRefusal>(verdict).message.size());
    if (source.empty() || size > bytes_ / 8) return;
    used_ += size;
    kept_.push_front({std::move(source), std::move(verdict), size});
    while (kept_.size() > entries_ || used_ > bytes_) {
      used_ -= kept_.back().size;
      kept_.pop_back();
    }
  }

 private:
  struct Entry {
    std::string source;
    GrammarVerdict verdict;
    std::size_t size = 0;  // in bytes
  };

  const std::size_t entries_;
  const std::size_t bytes_;
  std::size_t used_ = 0;
  std::list<Entry> kept_;  // the latest first
};

}  // namespace penstock::router
