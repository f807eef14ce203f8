#include "launcher/restart_policy.h"

#include <algorithm>

namespace penstock::launcher {

std::optional<std::chrono::nanoseconds> RestartPolicy::OnFailure(Time now) {
  while (!failures_.empty() && now - failures_.front() > limits_.window) failures_.pop_front();
  failures_.push_back(now);
  if (failures_.size() > limits_.restarts) return std::nullopt;
  std::chrono::nanoseconds pause = limits_.first_pause;
  for (std::size_t i = 1; i < failures_.size(); ++i) {
    pause = std::min(2 * pause, limits_.longest_pause);
  }
  return pause;
}

}  // namespace penstock::launcher
