#include "router/answer/events.h"

#include <type_traits>

namespace penstock::router::answer {

void Answer::Add(const Event& event) {
  std::visit(
      [this](const auto& e) {
        using T = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<T, TextDelta>) {
          text += e.text;
        } else if constexpr (std::is_same_v<T, ReasoningDelta>) {
          reasoning += e.text;
        } else if constexpr (std::is_same_v<T, CallBegin>) {
          calls.push_back({e.name, ""});
        } else if constexpr (std::is_same_v<T, ArgumentsDelta>) {
          calls[e.index].arguments += e.json;
        }
      },
      event);
}

}  // namespace penstock::router::answer
