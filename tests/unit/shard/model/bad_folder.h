// A model folder that must be refused: within a second, with the same line on each rank, which
// names the culprit.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "tests/unit/shard/model/model_folder.h"

namespace penstock::shard {

// `variant` names a golden variant, which opens until it is spoiled.
class BadFolder {
 public:
  BadFolder(const char* name, const char* variant) : name_(name), folder_(variant) {
    const Refusal unchanged = folder_.Open();
    EXPECT_EQ(unchanged.error, "") << variant;
  }
  const ModelFolder& folder() const { return folder_; }

  void ExpectRefused(std::uint32_t world, const std::vector<std::string>& words) const {
    const Refusal first = folder_.Open(0, world);
    const Refusal last = folder_.Open(world - 1, world);
    for (const std::string& word : words) EXPECT_THAT(first.error, testing::HasSubstr(word));
    EXPECT_EQ(first.error, last.error);
    EXPECT_THAT(first.error, testing::Not(testing::ContainsRegex("[[:cntrl:]]")));
    EXPECT_LT(first.error.size(), 1000u);
    EXPECT_LT(first.seconds, 1.0);
    EXPECT_LE(first.peak_bytes, folder_.Bytes() + kSlack);
    std::cout << "bad-folder " << name_ << ": " << first.seconds * 1000 << " ms: " << first.error
              << std::endl;
  }

 private:
  static constexpr std::uint64_t kSlack = 64u << 20;
  const char* name_;
  ModelFolder folder_;
};

}  // namespace penstock::shard
