#include "shard/backend/cpu/cache/first_touch.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "common/log.h"
#include "common/thread_priority.h"
#include "common/time.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

void TouchUnit(std::span<std::byte> memory, std::size_t unit) {
  const std::size_t end = std::min(memory.size(), (unit + 1) * kTouchUnit);
  for (std::size_t at = unit * kTouchUnit; at < end; at += kPage) {
    // Others may be writing to this very page: one instruction that writes and changes nothing.
    asm volatile("lock orb $0, %0" : "+m"(*reinterpret_cast<char*>(memory.data() + at)));
  }
}

void FirstTouch::StepBegins(std::size_t wanted) {
  wanted_ = std::max(wanted_.load(), wanted);
  steps_.Advance();
}

void FirstTouch::Await() {
  wanted_ = units_.size();
  for (int parity = 0; parity < 2; ++parity) steps_.Advance();
  if (thread_.joinable()) thread_.join();
}

void FirstTouch::AwaitTurn(std::size_t index) {
  for (;;) {
    const std::uint32_t seen = steps_.Value();
    if (index < wanted_) return;
    if (seen % 2 == 1) {
      steps_.AwaitChangeFrom(seen);
    } else if (seen == idle_since_ || !steps_.AwaitChangeFrom(seen, kIdle)) {
      idle_since_ = seen;
      return;
    }
  }
}

void FirstTouch::Run() {
  const Time begin = SteadyNow();
  RunBehind([this] {
    for (std::size_t i = 0; i < units_.size(); ++i) {
      AwaitTurn(i);
      if (stop_) return;
      TouchUnit(memory_, units_[i]);
    }
  });
  if (stop_) return;
  const auto spent = (SteadyNow() - begin) / std::chrono::milliseconds(1);
  log::Info("KV cache: " + std::to_string(units_.size() * kTouchUnit >> 20) +
            " MiB touched behind the start in " + std::to_string(spent) + " ms");
}

}  // namespace penstock::shard::cpu
