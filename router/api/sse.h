// Server-sent events as all dialects here write them: one line of data and an empty line.
#pragma once

#include <string>
#include <string_view>

#include "router/http/message.h"

namespace penstock::router::sse {

// While the stream is silent, comments are sent.
inline HttpResponse Head() {
  HttpResponse head{
      200, "text/event-stream", {{"cache-control", "no-cache"}, {"x-accel-buffering", "no"}}, ""};
  head.filler = ":\n\n";
  return head;
}

// `data` has no line break: JSON is written on one line.
inline void AppendEvent(std::string& out, std::string_view data) {
  out.append("data: ").append(data).append("\n\n");
}

inline void AppendNamedEvent(std::string& out, std::string_view name, std::string_view data) {
  out.append("event: ").append(name).append("\n");
  AppendEvent(out, data);
}

inline constexpr std::string_view kDone = "data: [DONE]\n\n";

}  // namespace penstock::router::sse
