#include "router/answer/reader.h"

#include <algorithm>
#include <utility>

namespace penstock::router::answer {
namespace {

// Whether the event belongs to a call after the first.
bool IsFurtherCall(const Event& event) {
  return std::visit(
      [](const auto& e) {
        if constexpr (requires { e.index; }) {
          return e.index > 0;
        } else {
          return false;
        }
      },
      event);
}

}  // namespace

Reader::Reader(const Format& format, ReadOptions options)
    : format_(format),
      options_(std::move(options)),
      scanner_(format, {.tools = options_.tools, .prompt_end = {}}) {}

void Reader::Start(std::string_view prompt_end) {
  scanner_ = Scanner(format_, {.tools = options_.tools, .prompt_end = prompt_end});
}

const std::vector<Event>& Reader::Token(std::string_view delta) {
  events_.clear();
  ++waiting_tokens_;
  if (!delta.empty()) Feed(delta);
  Check();
  return events_;
}

const std::vector<Event>& Reader::End(std::string_view tail) {
  events_.clear();
  if (!tail.empty()) Feed(tail);
  scanner_.Finish(events_);
  Check();
  return events_;
}

// A token counts as reasoning if its text begins or ends in it.
void Reader::Feed(std::string_view text) {
  const bool before = scanner_.in_reasoning();
  scanner_.Feed(text, events_);
  if (before || scanner_.in_reasoning()) reasoning_tokens_ += waiting_tokens_;
  waiting_tokens_ = 0;
}

void Reader::Check() {
  if (!options_.parallel_calls) std::erase_if(events_, IsFurtherCall);
  calls_ += static_cast<std::size_t>(std::ranges::count_if(
      events_, [](const Event& event) { return std::holds_alternative<CallBegin>(event); }));
}

}  // namespace penstock::router::answer
