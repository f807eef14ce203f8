// Compiled grammars of one model, the most recently used ones. The constructor starts a thread that
// builds the tables of the vocabulary (0.9 s for 128,000 tokens), so the first grammar seldom waits
// for them.
//
// Bounded: kEntries grammars. A grammar that is in use lives until its last user drops it.
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

  // `folder` holds tokenizer.json. `rows` is the length of a row of logits.
  GrammarCache(std::string folder, std::uint32_t rows, std::vector<TokenId> eos_ids);

  // Waits for the vocabulary. Returns the error of a tokenizer that cannot be used.
  absl::Status Ready() const;

  // A cached grammar, or null.
  std::shared_ptr<const text::CompiledGrammar> Find(const GrammarSpec& spec);

  absl::StatusOr<std::shared_ptr<const text::CompiledGrammar>> Get(const GrammarSpec& spec);

  // For a grammar that failed in use: its matchers share tables that may be full. The next Get
  // compiles it again.
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
  std::shared_future<Made> vocabulary_;  // last, so that its thread ends first
};

}  // namespace penstock::shard
