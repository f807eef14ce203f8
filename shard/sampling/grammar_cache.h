// Compiled grammars of one model, the most recently used ones. The vocabulary's tables are built on
// a thread of the cache's own from the day it is made (0.9 s for 128,000 tokens), so that the first
// grammar does not wait for them.
//
// Bounded: kEntries grammars; a grammar that is in use lives on after it was dropped.
//
// Thread-safe. Get compiles on the calling thread, outside the lock.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/plan/grammar.h"
#include "text/grammar.h"

namespace penstock::shard {

class GrammarCache {
 public:
  static constexpr std::size_t kEntries = 128;

  // `folder` holds tokenizer.json. `rows`: of the model's logits.
  GrammarCache(std::string folder, std::uint32_t rows, std::vector<TokenId> eos_ids);

  // Waits for the vocabulary. A model without a usable tokenizer gives its error here.
  absl::Status Ready() const;

  // A grammar that is there; else null.
  std::shared_ptr<const text::CompiledGrammar> Find(const GrammarSpec& spec);

  absl::StatusOr<std::shared_ptr<const text::CompiledGrammar>> Get(const GrammarSpec& spec);

  // A grammar that failed in use is compiled anew next time: what its matchers share may be full.
  void Drop(const GrammarSpec& spec);

  std::uint32_t rows() const { return rows_; }

  // Called by Get before it compiles. Before the first Get.
  void OnCompileForTest(std::function<void()> hook) { on_compile_ = std::move(hook); }

 private:
  using Made = absl::StatusOr<std::shared_ptr<const text::Vocabulary>>;
  struct Entry {
    GrammarSpec spec;
    std::shared_ptr<const text::CompiledGrammar> grammar;
  };

  const std::uint32_t rows_;
  std::function<void()> on_compile_;
  std::mutex mutex_;
  std::list<Entry> entries_;             // the latest first
  std::shared_future<Made> vocabulary_;  // last: its thread ends before the rest
};

}  // namespace penstock::shard
