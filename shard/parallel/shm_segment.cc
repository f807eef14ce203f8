#include "shard/parallel/shm_segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <utility>

namespace penstock::shard {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);
constexpr std::uint32_t kAbortBit = 1;
constexpr std::uint32_t kOneChunk = 2;

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

long Futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout,
                 nullptr, 0);
}

void WakeAll(std::atomic<std::uint32_t>& word) { Futex(word, FUTEX_WAKE, INT_MAX, nullptr); }

// The counters wrap around modulo 2^32.
bool HasArrived(std::uint32_t counter, std::uint32_t chunks) {
  return static_cast<std::int32_t>((counter & ~kAbortBit) - chunks * kOneChunk) >= 0;
}

absl::Status Failed(const std::string& what, const std::string& name) {
  return absl::UnavailableError(what + " of shared memory " + name + ": " + std::strerror(errno));
}

std::size_t SegmentSize(int world, std::size_t chunk_bytes) {
  return sizeof(ShmHeader) + 2 * static_cast<std::size_t>(world) * chunk_bytes;
}

}  // namespace

absl::StatusOr<ShmSegment> ShmSegment::Open(const std::string& name, int world,
                                            std::size_t chunk_bytes) {
  const std::string path = "/" + name;
  const int fd = shm_open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return Failed("opening", name);
  const std::size_t size = SegmentSize(world, chunk_bytes);
  // Reserves the pages now, so that a full /dev/shm is an error here and not a SIGBUS in a step.
  const int reserved = posix_fallocate(fd, 0, static_cast<off_t>(size));
  if (reserved != 0) {
    errno = reserved;
    close(fd);
    shm_unlink(path.c_str());
    return Failed("reserving " + std::to_string(size) + " bytes", name);
  }
  void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (base == MAP_FAILED) return Failed("mapping", name);
  return ShmSegment(path, base, size, chunk_bytes);
}

ShmSegment::ShmSegment(std::string name, void* base, std::size_t size, std::size_t chunk_bytes)
    : name_(std::move(name)), base_(base), size_(size), chunk_bytes_(chunk_bytes) {}

ShmSegment::ShmSegment(ShmSegment&& other) noexcept
    : name_(std::move(other.name_)),
      base_(std::exchange(other.base_, nullptr)),
      size_(other.size_),
      chunk_bytes_(other.chunk_bytes_) {}

ShmSegment::~ShmSegment() {
  if (base_ != nullptr) munmap(base_, size_);
}

std::byte* ShmSegment::buffer(int rank, int half) const {
  const auto index = static_cast<std::size_t>(2 * rank + half);
  return static_cast<std::byte*>(base_) + sizeof(ShmHeader) + index * chunk_bytes_;
}

void ShmSegment::Unlink() const { shm_unlink(name_.c_str()); }

void PublishCounter(ShmRank& rank) {
  rank.counter.fetch_add(kOneChunk);
  if (rank.waiters.load() > 0) WakeAll(rank.counter);
}

bool IsAborted(const ShmRank& rank) { return (rank.counter.load() & kAbortBit) != 0; }

void AbortCounter(ShmRank& rank) {
  rank.counter.fetch_or(kAbortBit);
  WakeAll(rank.counter);
}

ShmWait WaitForCounter(ShmRank& rank, std::uint32_t chunks, SteadyDeadline deadline) {
  using Clock = std::chrono::steady_clock;
  const auto spin_end = Clock::now() + kSpin;
  while (true) {
    const std::uint32_t seen = rank.counter.load(std::memory_order_acquire);
    // Checked first, because a rank that has finished this chunk may abort before it is read here.
    if (HasArrived(seen, chunks)) return ShmWait::kArrived;
    if ((seen & kAbortBit) != 0) return ShmWait::kAborted;
    const auto now = Clock::now();
    if (now < spin_end) {
      __builtin_ia32_pause();
      continue;
    }
    if (now >= deadline) return ShmWait::kTimedOut;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - now).count();
    const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    rank.waiters.fetch_add(1);
    Futex(rank.counter, FUTEX_WAIT, seen, &timeout);
    rank.waiters.fetch_sub(1);
  }
}

}  // namespace penstock::shard
