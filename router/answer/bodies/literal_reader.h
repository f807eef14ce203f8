// Reads values as Python and some models write them, and writes them as JSON: 'text', """text""",
// True, None, (1, 2), {key: 1}. JSON is among what it reads.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::router::answer {

class LiteralReader {
 public:
  enum class Begin {
    kValue,      // one value
    kArguments,  // name=value, … after the parenthesis of a call, to the parenthesis that closes it
  };

  // `quote`: marks both ends of a string, beside Python's quotes. Empty: none.
  explicit LiteralReader(Begin begin, std::string_view quote = {});

  // As Body::Take. It stops before what is no such value.
  std::size_t Take(std::string_view text, bool final, std::string& json);

  bool done() const { return done_; }
  // What follows is no value. Nothing more is taken.
  bool broken() const { return broken_; }

 private:
  // An open bracket.
  struct Level {
    char close = ']';
    char separator = 0;  // between key and value; 0: a list
    bool empty = true;
  };
  enum class Expect { kItem, kFirstItem, kSeparator, kValue, kComma };

  std::size_t TakeOne(std::string_view text, bool final, std::string& json);
  std::size_t TakeItem(std::string_view text, bool final, std::string& json);
  std::size_t TakeValue(std::string_view text, bool final, std::string& json);
  std::size_t TakeKey(std::string_view text, bool final, std::string& json);
  std::size_t TakeScalar(std::string_view text, bool final, std::string& json);
  std::size_t TakeQuote(std::string_view text, bool final, std::string& json);
  std::size_t TakeString(std::string_view text, bool final, std::string& json);
  std::size_t TakeEscape(std::string_view text, bool final, std::string& json);
  std::size_t Open(Level level, std::string& json);
  std::size_t Close(std::string& json);
  std::size_t Break();
  void BeginItem(std::string& json);
  void ValueEnded();

  std::string_view quote_;
  std::vector<Level> levels_;
  Expect expect_ = Expect::kValue;
  std::string_view string_end_;  // of the string that is open; empty: none is
  bool done_ = false;
  bool broken_ = false;
};

// A number as Python or JSON writes it, as JSON; empty if it is none.
std::string NumberAsJson(std::string_view text);

}  // namespace penstock::router::answer
