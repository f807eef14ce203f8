#include "tools/bench/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace penstock::bench {

ProgressBar::ProgressBar(bool wanted, std::uint32_t total)
    : shown_(wanted && total > 0 && ::isatty(STDERR_FILENO) != 0), total_(total) {}

void ProgressBar::Show(std::uint32_t done) const {
  if (!shown_ || (done % std::max(1u, total_ / 50) != 0 && done != total_)) return;
  const int filled = static_cast<int>(40ull * done / total_);
  std::fprintf(stderr, "\r[%.*s%*s] %u/%u", filled, "########################################",
               40 - filled, "", done, total_);
}

void ProgressBar::End() const {
  if (shown_) std::fprintf(stderr, "\n");
}

}  // namespace penstock::bench
