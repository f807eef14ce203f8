// Cuts a byte stream into lines and keeps the last ones. Bounded: a line longer than kMaxLine is
// passed on in pieces of that length, and only the last kKeptLines are kept.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace penstock::launcher {

class LineBuffer {
 public:
  using OnLine = std::function<void(std::string_view line)>;

  static constexpr std::size_t kMaxLine = 16 * 1024;
  static constexpr std::size_t kKeptLines = 20;

  // Calls `on_line` for every line that ends in `bytes`, without its line break (LF or CR LF).
  void Append(std::string_view bytes, const OnLine& on_line);

  // The end of the stream: a last line without a line break.
  void Finish(const OnLine& on_line);

  const std::deque<std::string>& last_lines() const { return last_lines_; }

 private:
  void Emit(const OnLine& on_line);

  std::string partial_;
  std::deque<std::string> last_lines_;
};

}  // namespace penstock::launcher
