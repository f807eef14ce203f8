// What an output must match. A dialect reads it from a request, and the shard enforces it. Opaque
// to the scheduler.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

struct GrammarSpec {
  enum class Kind : std::uint8_t {
    kNone,
    kJsonSchema,
    kRegex,  // of the whole output; syntax of Rust's regex crate
    kLark,   // llguidance's variant
  };
  Kind kind = Kind::kNone;
  std::string source;

  bool empty() const { return kind == Kind::kNone; }
  friend bool operator==(const GrammarSpec&, const GrammarSpec&) = default;
};

}  // namespace penstock
