// A text as an answer, in the format of that name.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "router/answer/scanner.h"

namespace penstock::router::answer::testing {

// The text comes in one piece and in bytes. If the two answers differ, the result is empty.
inline Answer ReadAnswer(std::string_view format, std::string_view text,
                         std::shared_ptr<const ToolSet> tools, std::string_view prompt_end = {}) {
  Answer answers[2];
  for (const std::size_t size : {text.size() + 1, std::size_t{1}}) {
    Scanner scanner(*FindFormat(format), {.tools = tools, .prompt_end = prompt_end});
    Answer& answer = answers[size == 1];
    std::vector<Event> events;
    const auto collect = [&] {
      for (const Event& event : events) answer.Add(event);
      events.clear();
    };
    for (std::size_t i = 0; i < text.size(); i += size) {
      scanner.Feed(text.substr(i, size), events);
      collect();
    }
    scanner.Finish(events);
    collect();
  }
  return answers[0] == answers[1] ? answers[0] : Answer();
}

}  // namespace penstock::router::answer::testing
