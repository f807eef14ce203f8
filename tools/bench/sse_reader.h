// Incremental reader of server-sent events: bytes in any pieces, one callback per `data:` line.
// Other fields and comments are ignored. It shares no code with the router's writer, so that it can
// test it.
#pragma once

#include <string>
#include <string_view>

namespace penstock::bench {

class SseReader {
 public:
  // Calls on_data(std::string_view payload) for each complete data line in order.
  template <class OnData>
  void Feed(std::string_view bytes, OnData&& on_data) {
    pending_.append(bytes);
    std::size_t begin = 0;
    for (std::size_t end; (end = pending_.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      std::string_view line(pending_.data() + begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.starts_with("data:")) continue;
      line.remove_prefix(5);
      if (line.starts_with(' ')) line.remove_prefix(1);
      on_data(line);
    }
    pending_.erase(0, begin);
  }

 private:
  std::string pending_;
};

}  // namespace penstock::bench
