// Rank 1 of two. The test sets what rank 0 broadcasts.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <vector>

#include "common/ids.h"
#include "shard/parallel/communicator.h"

namespace penstock::shard {

class FollowingCommunicator final : public Communicator {
 public:
  int rank() const override { return 1; }
  int world() const override { return 2; }
  absl::Status AllReduceSum(float*, std::size_t) override { return absl::OkStatus(); }
  absl::Status AllGather(const void*, std::size_t, void*) override { return absl::OkStatus(); }
  absl::Status Broadcast(void* data, std::size_t bytes, int root) override {
    EXPECT_EQ(root, 0);
    EXPECT_EQ(bytes, tokens.front().size() * sizeof(TokenId));
    std::memcpy(data, tokens.front().data(), bytes);
    tokens.pop_front();
    return absl::OkStatus();
  }
  void Abort() override { aborted = true; }

  std::deque<std::vector<TokenId>> tokens;
  bool aborted = false;
};

}  // namespace penstock::shard
