// Texts that wait for their vectors, and a thread for each group that fetches them from its shards.
//
// A call to a group takes the texts that wait, also of several requests, up to the tokens of a
// step. With several ranks each rank is called with the same texts, so one call at a time is made
// to a group. The queue is bounded in texts; a request that does not fit is refused.
//
// Thread-safe. Callbacks come from the threads of the groups, or from the thread that ends a wait.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/plan/embed_text.h"
#include "router/dispatch/group_link.h"

namespace penstock::router {

struct EmbedQueueOptions {
  std::uint32_t max_texts = 4096;       // that wait
  std::uint32_t call_tokens = 512;      // of a call, unless one text has more
  std::uint32_t call_texts = 128;       // of a call
  std::chrono::milliseconds timeout{};  // for a step's worth of tokens
};

class EmbedQueue {
 public:
  using Done = std::function<void(absl::StatusOr<Vectors>)>;

  explicit EmbedQueue(const EmbedQueueOptions& options);
  ~EmbedQueue();  // Stop
  EmbedQueue(const EmbedQueue&) = delete;
  EmbedQueue& operator=(const EmbedQueue&) = delete;

  // Begins to use the group of the link, or ends it: its call ends with an error.
  void Up(const GroupLink& link);
  void Down(GroupId group);

  // False if the texts do not fit in the queue; then `done` is not called.
  bool Post(std::vector<EmbedText> texts, Done done);

  // Ends what waits with this error.
  void FailAll(const absl::Status& status);
  // Ends all groups. Drops what waits.
  void Stop();

 private:
  struct Request {
    std::vector<EmbedText> texts;
    Vectors vectors;
    std::size_t taken = 0;  // texts that are in a call or done
    std::size_t left = 0;   // texts without a vector
    bool over = false;
    Done done;
  };
  struct Place {
    std::shared_ptr<Request> request;
    std::size_t index = 0;
  };

  // The ranks of a group and the thread that calls them.
  class Group;

  std::vector<Place> Take(const std::stop_token& stop);
  void Serve(Group& group, const std::stop_token& stop);
  void Finish(std::vector<Place> places, absl::StatusOr<Vectors> vectors);
  ShardClient::Deadline DeadlineFor(std::size_t tokens) const;

  const EmbedQueueOptions options_;
  std::mutex mutex_;
  std::condition_variable_any news_;
  std::deque<std::shared_ptr<Request>> waiting_;  // those with texts that no call has taken
  std::size_t waiting_texts_ = 0;
  std::map<GroupId, std::unique_ptr<Group>> groups_;
};

}  // namespace penstock::router
