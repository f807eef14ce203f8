// Reads the arguments of a call, as its format writes them, and writes them as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock::router::answer {

class Body {
 public:
  virtual ~Body() = default;

  // Takes the beginning of `text` as far as its meaning is certain, and appends its JSON. Returns
  // how many bytes it took; the caller repeats the rest with more text. `final`: no more text
  // comes. What is taken and written altogether does not depend on the calls.
  virtual std::size_t Take(std::string_view text, bool final, std::string& json) = 0;

  // The arguments have ended. Nothing more may be taken.
  bool done() const { return done_; }

 protected:
  bool done_ = false;
};

}  // namespace penstock::router::answer
