// The markers that count in one state of a scanner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock::router::answer {

class MarkerTable {
 public:
  enum class Kind : std::uint8_t {
    kCall,            // a call may begin here
    kLineCall,        // the same at the beginning of a line
    kReasoningBegin,  // only at the beginning of the answer
    kReasoning,       // anywhere
    kReasoningEnd,
    kDropped,
  };

  struct Match {
    std::size_t position = 0;
    std::string_view marker;
    Kind kind = Kind::kDropped;
    bool partial = false;  // the text ends inside of the marker
  };

  void Add(std::string_view marker, Kind kind);
  // Before the first search: longer markers count before their beginnings.
  void Sort();

  // Whether `text` begins with a marker of the kinds that `allowed` accepts.
  template <class Allowed>
  bool MatchAt(std::string_view text, bool final, const Allowed& allowed, Match& match) const {
    for (const Entry& entry : entries_) {
      if (!allowed(entry.kind)) continue;
      const bool whole = text.starts_with(entry.marker);
      if (!whole && (final || !entry.marker.starts_with(text))) continue;
      match.marker = entry.marker;
      match.kind = entry.kind;
      match.partial = !whole;
      return true;
    }
    return false;
  }

 private:
  struct Entry {
    std::string_view marker;
    Kind kind = Kind::kDropped;
  };
  std::vector<Entry> entries_;
};

}  // namespace penstock::router::answer
