// How many generations may be running and waiting at the same time (--max-concurrent-requests).
// A request above the limit is refused at once (429), so that clients see the bound.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace penstock::router {

class Permits;

// Holds some permits and returns them in its destructor.
class Permit {
 public:
  Permit() = default;
  Permit(Permits* from, std::uint32_t count) : from_(from), count_(count) {}
  Permit(Permit&& other) noexcept
      : from_(std::exchange(other.from_, nullptr)),
        count_(other.count_),
        counter_(std::move(other.counter_)) {}
  Permit& operator=(Permit&& other) noexcept {
    std::swap(from_, other.from_);
    std::swap(count_, other.count_);
    counter_.swap(other.counter_);
    return *this;
  }
  std::uint32_t count() const { return count_; }
  // Also subtracts its count from `counter` in its destructor.
  void CountIn(std::shared_ptr<std::atomic<std::uint32_t>> counter) {
    counter_ = std::move(counter);
  }
  inline ~Permit();

 private:
  Permits* from_ = nullptr;
  std::uint32_t count_ = 0;
  std::shared_ptr<std::atomic<std::uint32_t>> counter_;
};

// Must outlive its permits.
class Permits {
 public:
  explicit Permits(std::uint32_t count) : left_(count) {}
  Permits(const Permits&) = delete;
  Permits& operator=(const Permits&) = delete;

  // All or none.
  std::optional<Permit> Take(std::uint32_t count) {
    std::uint32_t left = left_.load();
    do {
      if (left < count) return std::nullopt;
    } while (!left_.compare_exchange_weak(left, left - count));
    return Permit(this, count);
  }
  void Give(std::uint32_t count) { left_.fetch_add(count); }

 private:
  std::atomic<std::uint32_t> left_;
};

inline Permit::~Permit() {
  if (from_ != nullptr) from_->Give(count_);
  if (counter_ != nullptr) counter_->fetch_sub(count_);
}

}  // namespace penstock::router
