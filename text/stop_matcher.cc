#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace penstock::text {

StopMatcher::StopMatcher(std::vector<std::string> stops, Where where) : where_(where) {
  automata_.reserve(stops.size());
  for (std::string& stop : stops) automata_.push_back(Build(std::move(stop)));
}

StopMatcher::Automaton StopMatcher::Build(std::string pattern) {
  Automaton automaton;
  automaton.fallback.assign(pattern.size() + 1, 0);
  std::uint32_t border = 0;
  for (std::size_t i = 1; i < pattern.size(); ++i) {
    while (border > 0 && pattern[i] != pattern[border]) border = automaton.fallback[border];
    if (pattern[i] == pattern[border]) ++border;
    automaton.fallback[i + 1] = border;
  }
  automaton.pattern = std::move(pattern);
  return automaton;
}

// Returns whether the text now ends with the whole pattern.
bool StopMatcher::Step(Automaton& automaton, char byte) {
  const std::string& pattern = automaton.pattern;
  std::size_t& matched = automaton.matched;
  if (matched == pattern.size()) matched = automaton.fallback[matched];
  while (matched > 0 && pattern[matched] != byte) matched = automaton.fallback[matched];
  if (matched < pattern.size() && pattern[matched] == byte) ++matched;
  return matched == pattern.size();
}

std::optional<StopMatch> StopMatcher::Push(std::string_view piece) {
  ++pieces_;
  for (const char byte : piece) {
    ++length_;
    bool complete = false;
    for (Automaton& automaton : automata_) complete |= Step(automaton, byte);
    if (!complete || where_ != Where::kAnywhere) continue;
    const std::optional<StopMatch> match = LongestAt(length_);
    // Only the empty stop string waits for the end of the text part.
    if (match && match->end > match->begin) return match;
  }
  return LongestAt(length_);
}

std::optional<StopMatch> StopMatcher::LongestAt(std::size_t end) const {
  std::optional<StopMatch> longest;
  for (std::size_t i = 0; i < automata_.size(); ++i) {
    const std::size_t size = automata_[i].pattern.size();
    if (automata_[i].matched != size) continue;
    if (longest && longest->end - longest->begin >= size) continue;
    longest = StopMatch{.stop = i, .begin = end - size, .end = end, .token_count = pieces_};
  }
  return longest;
}

std::size_t StopMatcher::held() const {
  std::size_t held = 0;
  for (const Automaton& automaton : automata_) held = std::max(held, automaton.matched);
  return held;
}

}  // namespace penstock::text
