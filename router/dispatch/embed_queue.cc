#include "router/dispatch/embed_queue.h"

#include <algorithm>
#include <stop_token>
#include <string>

namespace penstock::router {

class EmbedQueue::Group {
 public:
  explicit Group(const GroupLink& link)
      : epoch_(link.formed().epoch), tls_(link.options().tls), options_(link.options()) {}

  void Start(EmbedQueue& queue) {
    thread_ = std::jthread([this, &queue](const std::stop_token& stop) {
      for (std::size_t rank = 0; rank < options_.sockets.size(); ++rank) {
        ranks_.push_back(std::make_unique<ShardClient>(
            options_.sockets[rank], static_cast<std::uint32_t>(rank), stop, tls_.get()));
      }
      queue.Serve(*this, stop);
    });
  }
  // The thread ends soon.
  void RequestStop() { thread_.request_stop(); }

  // Calls all ranks at once. The vectors of rank 0, or the first error in rank order.
  absl::StatusOr<Vectors> Call(std::span<const EmbedText> texts, ShardClient::Deadline deadline) {
    std::vector<absl::StatusOr<Vectors>> answers(ranks_.size(), absl::UnknownError(""));
    const auto call = [&](std::size_t rank) {
      answers[rank] = ranks_[rank]->Embed(epoch_, texts, deadline);
    };
    std::vector<std::thread> others;
    for (std::size_t rank = 1; rank < ranks_.size(); ++rank) others.emplace_back(call, rank);
    call(0);
    for (std::thread& thread : others) thread.join();
    for (absl::StatusOr<Vectors>& answer : answers) {
      if (!answer.ok()) return answer.status();
    }
    if (answers.front()->size() == texts.size()) return *std::move(answers.front());
    return absl::InternalError("a shard answered " + std::to_string(answers.front()->size()) +
                               " vectors for " + std::to_string(texts.size()) + " texts");
  }

 private:
  const Epoch epoch_;
  const std::shared_ptr<const TlsIdentity> tls_;
  const GroupLinkOptions options_;
  std::vector<std::unique_ptr<ShardClient>> ranks_;
  std::jthread thread_;  // last: it uses the others
};

EmbedQueue::EmbedQueue(const EmbedQueueOptions& options) : options_(options) {}
EmbedQueue::~EmbedQueue() { Stop(); }

void EmbedQueue::Up(const GroupLink& link) {
  auto group = std::make_unique<Group>(link);
  Down(link.formed().group);
  const std::lock_guard lock(mutex_);
  group->Start(*this);
  groups_[link.formed().group] = std::move(group);
}

void EmbedQueue::Down(GroupId id) {
  std::unique_ptr<Group> group;  // destroyed without the lock, which its thread needs
  {
    const std::lock_guard lock(mutex_);
    const auto found = groups_.find(id);
    if (found == groups_.end()) return;
    group = std::move(found->second);
    groups_.erase(found);
  }
  group->RequestStop();
}

bool EmbedQueue::Post(std::vector<EmbedText> texts, Done done) {
  auto request = std::make_shared<Request>();
  request->left = texts.size();
  request->vectors.resize(texts.size());
  request->texts = std::move(texts);
  request->done = std::move(done);
  {
    const std::lock_guard lock(mutex_);
    if (waiting_texts_ + request->left > options_.max_texts) return false;
    waiting_texts_ += request->left;
    waiting_.push_back(std::move(request));
  }
  news_.notify_one();
  return true;
}

// Waits for texts; none if the group is to stop. The first text is taken whatever its length.
std::vector<EmbedQueue::Place> EmbedQueue::Take(const std::stop_token& stop) {
  std::vector<Place> places;
  std::unique_lock lock(mutex_);
  if (!news_.wait(lock, stop, [this] { return !waiting_.empty(); })) return places;
  std::size_t tokens = 0;
  while (!waiting_.empty() && places.size() < options_.call_texts) {
    const std::shared_ptr<Request> request = waiting_.front();
    const std::size_t size = request->texts[request->taken].tokens.size();
    if (!places.empty() && tokens + size > options_.call_tokens) break;
    tokens += size;
    places.push_back({request, request->taken++});
    --waiting_texts_;
    if (request->taken == request->texts.size()) waiting_.pop_front();
  }
  if (!waiting_.empty()) news_.notify_one();  // another group may have time
  return places;
}

ShardClient::Deadline EmbedQueue::DeadlineFor(std::size_t tokens) const {
  const auto steps = static_cast<std::int64_t>(tokens / options_.call_tokens + 1);
  return std::chrono::system_clock::now() + options_.timeout * steps;
}

void EmbedQueue::Serve(Group& group, const std::stop_token& stop) {
  while (true) {
    std::vector<Place> places = Take(stop);
    if (places.empty()) return;
    std::vector<EmbedText> texts;
    std::size_t tokens = 0;
    for (const Place& place : places) {
      EmbedText& text = place.request->texts[place.index];
      tokens += text.tokens.size();
      texts.push_back(std::move(text));
    }
    Finish(std::move(places), group.Call(texts, DeadlineFor(tokens)));
  }
}

void EmbedQueue::Finish(std::vector<Place> places, absl::StatusOr<Vectors> vectors) {
  std::vector<std::pair<std::shared_ptr<Request>, absl::StatusOr<Vectors>>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < places.size(); ++i) {
      Request& request = *places[i].request;
      --request.left;
      if (request.over) continue;
      if (vectors.ok()) {
        request.vectors[places[i].index] = std::move((*vectors)[i]);
        if (request.left > 0) continue;
        ended.emplace_back(places[i].request, std::move(request.vectors));
      } else {
        ended.emplace_back(places[i].request, vectors.status());
        // Its other texts need no vectors.
        if (const auto found = std::ranges::find(waiting_, places[i].request);
            found != waiting_.end()) {
          waiting_texts_ -= request.texts.size() - request.taken;
          waiting_.erase(found);
        }
      }
      request.over = true;
    }
  }
  for (auto& [request, result] : ended) request->done(std::move(result));
}

void EmbedQueue::FailAll(const absl::Status& status) {
  std::vector<std::shared_ptr<Request>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (const std::shared_ptr<Request>& request : waiting_) {
      if (!std::exchange(request->over, true)) ended.push_back(request);
    }
    waiting_.clear();
    waiting_texts_ = 0;
  }
  for (const std::shared_ptr<Request>& request : ended) request->done(status);
}

void EmbedQueue::Stop() {
  std::map<GroupId, std::unique_ptr<Group>> groups;
  {
    const std::lock_guard lock(mutex_);
    groups.swap(groups_);
    waiting_.clear();
    waiting_texts_ = 0;
  }
  for (auto& [id, group] : groups) group->RequestStop();
}

}  // namespace penstock::router
