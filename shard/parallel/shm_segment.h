// The shared-memory object of ShmCommunicator: layout, mapping, counters. Internal to parallel/.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock::shard {

inline constexpr int kMaxShmRanks = 64;

// The operation of a published chunk. The other ranks compare it with their own.
struct ShmOperation {
  std::uint32_t kind = 0;
  std::uint32_t root = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const ShmOperation&, const ShmOperation&) = default;
};

struct alignas(64) ShmRank {
  // Twice the number of published chunks. Bit 0 means aborted, so that a futex wait sees the
  // change.
  std::atomic<std::uint32_t> counter;
  std::atomic<std::uint32_t> waiters;
  std::array<ShmOperation, 2> operation;  // by half
};

struct ShmHeader {
  ShmRank ranks[kMaxShmRanks];
};

class ShmSegment {
 public:
  // Opens the object, or creates it if this rank is the first. All ranks use the same size.
  static absl::StatusOr<ShmSegment> Open(const std::string& name, int world,
                                         std::size_t chunk_bytes);
  ShmSegment(ShmSegment&& other) noexcept;
  ShmSegment& operator=(ShmSegment&&) = delete;
  ~ShmSegment();

  ShmHeader& header() const { return *static_cast<ShmHeader*>(base_); }
  ShmRank& rank(int rank) const { return header().ranks[rank]; }
  std::byte* buffer(int rank, int half) const;
  std::size_t chunk_bytes() const { return chunk_bytes_; }
  void Unlink() const;

 private:
  ShmSegment(std::string name, void* base, std::size_t size, std::size_t chunk_bytes);
  std::string name_;
  void* base_;
  std::size_t size_;
  std::size_t chunk_bytes_;
};

using SteadyDeadline = std::chrono::steady_clock::time_point;

enum class ShmWait : std::uint8_t { kArrived, kAborted, kTimedOut };

// Adds one chunk to the counter and wakes its waiters.
void PublishCounter(ShmRank& rank);
bool IsAborted(const ShmRank& rank);
void AbortCounter(ShmRank& rank);

// Waits until the counter shows at least `chunks` published chunks.
ShmWait WaitForCounter(ShmRank& rank, std::uint32_t chunks, SteadyDeadline deadline);

}  // namespace penstock::shard
