// A cache of grammars over the byte-level tokenizer. It does not compile before Open.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include "shard/sampling/grammar_cache.h"
#include "tests/unit/text/tiny_tokenizer.h"

namespace penstock::shard {

constexpr auto kTestTimeout = std::chrono::seconds(20);
constexpr std::uint32_t kByteRows = 264;  // id of byte b is b
constexpr TokenId kByteEnd = 259;

class GatedGrammars {
 public:
  GatedGrammars() : cache_(Folder(), kByteRows, {kByteEnd}) {
    cache_.OnCompileForTest([this, open = gate_.get_future().share()] {
      ++compiled_;
      EXPECT_EQ(open.wait_for(kTestTimeout), std::future_status::ready) << "a caller waited for it";
    });
  }

  GrammarCache& cache() { return cache_; }
  void Open() { gate_.set_value(); }
  int compiled() const { return compiled_; }  // begun to be

  static GrammarSpec Regex(std::string source) {
    return {GrammarSpec::Kind::kRegex, std::move(source)};
  }

 private:
  const std::string& Folder() {
    folder_.Write("tokenizer.json", text::ByteLevelJson());
    path_ = folder_.path();
    return path_;
  }

  TempFolder folder_;
  std::string path_;
  std::promise<void> gate_;
  std::atomic<int> compiled_{0};
  GrammarCache cache_;
};

}  // namespace penstock::shard
