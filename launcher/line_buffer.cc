#include "launcher/line_buffer.h"

#include <algorithm>

namespace penstock::launcher {

void LineBuffer::Append(std::string_view bytes, const OnLine& on_line) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::size_t room = kMaxLine - partial_.size();
    const std::size_t take = std::min(std::min(end, bytes.size()), room);
    partial_.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
    const bool ended = !bytes.empty() && bytes.front() == '\n';
    if (ended) bytes.remove_prefix(1);
    if (ended || partial_.size() == kMaxLine) Emit(on_line);
  }
}

void LineBuffer::Finish(const OnLine& on_line) {
  if (!partial_.empty()) Emit(on_line);
}

void LineBuffer::Emit(const OnLine& on_line) {
  if (partial_.ends_with('\r')) partial_.pop_back();
  on_line(partial_);
  last_lines_.push_back(std::move(partial_));
  if (last_lines_.size() > kKeptLines) last_lines_.pop_front();
  partial_.clear();
}

}  // namespace penstock::launcher
