#include "shard/parallel/shm_communicator.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "common/status.h"
#include "shard/parallel/shm_segment.h"

namespace penstock::shard {
namespace {

enum Kind : std::uint32_t { kJoin = 1, kReduce, kGather, kBroadcast };

void AddTo(float* sums, const float* terms, std::size_t count) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    _mm_storeu_ps(sums + i, _mm_add_ps(_mm_loadu_ps(sums + i), _mm_loadu_ps(terms + i)));
  }
  for (; i < count; ++i) sums[i] += terms[i];
}

class ShmCommunicator final : public Communicator {
 public:
  ShmCommunicator(ShmSegment segment, const ShmOptions& options)
      : segment_(std::move(segment)), options_(options) {}
  ~ShmCommunicator() override { Abort(); }

  int rank() const override { return options_.rank; }
  int world() const override { return options_.world; }

  absl::Status Join();
  absl::Status AllReduceSum(float* data, std::size_t count) override;
  absl::Status AllGather(const void* mine, std::size_t bytes, void* all) override;
  absl::Status Broadcast(void* data, std::size_t bytes, int root) override;
  void Abort() override;

 private:
  // Publishes `bytes` of `mine` (null: none) and waits for all ranks.
  absl::Status Exchange(const ShmOperation& operation, const void* mine, std::size_t bytes);
  absl::Status Await(int peer, const ShmOperation& operation);
  const std::byte* Part(int rank) const { return segment_.buffer(rank, half_); }

  ShmSegment segment_;
  const ShmOptions options_;
  std::uint32_t chunks_ = 0;
  int half_ = 0;
};

absl::Status ShmCommunicator::Exchange(const ShmOperation& operation, const void* mine,
                                       std::size_t bytes) {
  ShmRank& self = segment_.rank(rank());
  if (IsAborted(self)) {
    return absl::AbortedError("rank " + std::to_string(rank()) + ": the group was aborted");
  }
  half_ = static_cast<int>(chunks_ % 2);
  ++chunks_;
  if (mine != nullptr && bytes > 0) std::memcpy(segment_.buffer(rank(), half_), mine, bytes);
  self.operation[static_cast<std::size_t>(half_)] = operation;
  PublishCounter(self);
  for (int peer = 0; peer < world(); ++peer) {
    if (peer == rank()) continue;
    if (absl::Status status = Await(peer, operation); !status.ok()) {
      Abort();
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status ShmCommunicator::Await(int peer, const ShmOperation& operation) {
  ShmRank& other = segment_.rank(peer);
  const auto deadline = std::chrono::steady_clock::now() + options_.timeout;
  const ShmWait outcome = WaitForCounter(other, chunks_, deadline);
  const bool arrived = outcome == ShmWait::kArrived;
  if (arrived && other.operation[static_cast<std::size_t>(half_)] == operation) {
    return absl::OkStatus();
  }
  const std::string pair =
      "rank " + std::to_string(rank()) + " waiting for rank " + std::to_string(peer);
  if (outcome == ShmWait::kAborted) return absl::AbortedError(pair + ": the group was aborted");
  if (outcome == ShmWait::kTimedOut) {
    return absl::DeadlineExceededError(pair + ": nothing for " +
                                       std::to_string(options_.timeout.count()) + " ms");
  }
  return absl::InternalError(pair + ": the ranks call different operations or sizes");
}

absl::Status ShmCommunicator::Join() {
  const ShmOperation join{kJoin, static_cast<std::uint32_t>(world()), segment_.chunk_bytes()};
  absl::Status status = Exchange(join, nullptr, 0);
  segment_.Unlink();
  return status;
}

absl::Status ShmCommunicator::AllReduceSum(float* data, std::size_t count) {
  const std::size_t step = segment_.chunk_bytes() / sizeof(float);
  for (std::size_t begin = 0; begin < count; begin += step) {
    const std::size_t n = std::min(step, count - begin);
    float* chunk = data + begin;
    PENSTOCK_RETURN_IF_ERROR(Exchange({kReduce, 0, n * sizeof(float)}, chunk, n * sizeof(float)));
    std::memcpy(chunk, Part(0), n * sizeof(float));
    for (int peer = 1; peer < world(); ++peer) {
      const float* part = reinterpret_cast<const float*>(Part(peer));
      AddTo(chunk, part, n);
    }
  }
  return absl::OkStatus();
}

absl::Status ShmCommunicator::AllGather(const void* mine, std::size_t bytes, void* all) {
  const auto* source = static_cast<const std::byte*>(mine);
  auto* target = static_cast<std::byte*>(all);
  for (std::size_t begin = 0; begin < bytes; begin += segment_.chunk_bytes()) {
    const std::size_t n = std::min(segment_.chunk_bytes(), bytes - begin);
    PENSTOCK_RETURN_IF_ERROR(Exchange({kGather, 0, n}, source + begin, n));
    for (int peer = 0; peer < world(); ++peer) {
      std::memcpy(target + static_cast<std::size_t>(peer) * bytes + begin, Part(peer), n);
    }
  }
  return absl::OkStatus();
}

absl::Status ShmCommunicator::Broadcast(void* data, std::size_t bytes, int root) {
  auto* bytes_of = static_cast<std::byte*>(data);
  for (std::size_t begin = 0; begin < bytes; begin += segment_.chunk_bytes()) {
    const std::size_t n = std::min(segment_.chunk_bytes(), bytes - begin);
    const void* mine = rank() == root ? bytes_of + begin : nullptr;
    PENSTOCK_RETURN_IF_ERROR(Exchange({kBroadcast, static_cast<std::uint32_t>(root), n}, mine, n));
    if (rank() != root) std::memcpy(bytes_of + begin, Part(root), n);
  }
  return absl::OkStatus();
}

void ShmCommunicator::Abort() {
  for (int peer = 0; peer < world(); ++peer) AbortCounter(segment_.rank(peer));
}

absl::Status Check(const ShmOptions& options) {
  if (options.world < 2 || options.world > kMaxShmRanks) {
    return BadValue("world", std::to_string(options.world), "2 to 64 for shared memory");
  }
  if (options.rank < 0 || options.rank >= options.world) {
    return BadValue("rank", std::to_string(options.rank),
                    "0 to " + std::to_string(options.world - 1));
  }
  if (options.name.empty() || options.name.find('/') != std::string::npos) {
    return BadValue("rendezvous", options.name, "a name without '/'");
  }
  if (options.chunk_bytes < 4096 || options.chunk_bytes % 64 != 0) {
    return BadValue("chunk_bytes", std::to_string(options.chunk_bytes),
                    "a multiple of 64, at least 4096");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> JoinShmGroup(const ShmOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(Check(options));
  PENSTOCK_ASSIGN_OR_RETURN(ShmSegment segment,
                            ShmSegment::Open(options.name, options.world, options.chunk_bytes));
  auto communicator = std::make_unique<ShmCommunicator>(std::move(segment), options);
  PENSTOCK_RETURN_IF_ERROR(communicator->Join());
  return std::unique_ptr<Communicator>(std::move(communicator));
}

}  // namespace penstock::shard
