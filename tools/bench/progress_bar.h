// A bar on standard error while requests are answered: "[#####     ] 12/100".
#pragma once

#include <cstdint>

namespace penstock::bench {

class ProgressBar {
 public:
  // Draws nothing if `wanted` is false or standard error is no terminal.
  ProgressBar(bool wanted, std::uint32_t total);

  // After each answer. Draws at most 50 times in all.
  void Show(std::uint32_t done) const;
  // Ends the line.
  void End() const;

 private:
  bool shown_;
  std::uint32_t total_;
};

}  // namespace penstock::bench
