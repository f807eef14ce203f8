// Finds the first of several stop strings in a text that arrives in parts.
//
// The match is the one that ends first. Of several that end at the same byte it is the longest. It
// does not depend on how the text was divided. There is one Knuth-Morris-Pratt automaton per stop
// string, so work per byte is proportional to the number of stop strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::text {

struct StopMatch {
  std::size_t stop = 0;           // index of the stop string
  std::size_t begin = 0;          // first byte of it in the whole text
  std::size_t end = 0;            // byte after it
  std::uint32_t token_count = 0;  // pieces pushed, the one that completed it included
};

// Owned and used by one thread at a time.
class StopMatcher {
 public:
  enum class Where : std::uint8_t {
    kAnywhere,    // also in the middle of a piece
    kAtPieceEnd,  // only where the text ends with it after a piece (TGI's rule)
  };

  // An empty stop string matches at the end of the first piece.
  StopMatcher(std::vector<std::string> stops, Where where);

  // Takes the text of the next token, possibly empty. Do not call it again after a match.
  std::optional<StopMatch> Push(std::string_view piece);

  // Bytes at the end of the text that could be the beginning of a stop string. Cutting them off
  // never divides a UTF-8 character if text and stop strings are UTF-8.
  std::size_t held() const;

  const std::string& stop(std::size_t index) const { return automata_[index].pattern; }

 private:
  struct Automaton {
    std::string pattern;
    std::vector<std::uint32_t> fallback;  // longest proper border of each prefix
    std::size_t matched = 0;              // bytes of the pattern that the text ends with
  };

  static Automaton Build(std::string pattern);
  static bool Step(Automaton& automaton, char byte);
  std::optional<StopMatch> LongestAt(std::size_t end) const;

  std::vector<Automaton> automata_;
  Where where_;
  std::size_t length_ = 0;  // of the whole text
  std::uint32_t pieces_ = 0;
};

}  // namespace penstock::text
