// Grammars of structured answers, and answers whose field values are pieces of a recorded text.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/plan/grammar.h"

namespace penstock::text {

class StorySchemas {
 public:
  struct Example {
    GrammarSpec::Kind kind = GrammarSpec::Kind::kRegex;
    std::string grammar;
    std::string text;
  };

  // Field values are cut out of `recorded`; `seed` chooses where.
  StorySchemas(std::string recorded, unsigned seed);

  // A character of a book and a city, each field on a line of its own, as in the benchmarks of
  // SGLang: names of at most 16 letters, digits and blanks, choices, numbers.
  Example Character();
  Example City();

  // A JSON schema of a random shape, and a value of it.
  Example Random();

 private:
  struct Part {
    std::string schema;
    std::string value;
  };

  std::string Piece(std::size_t most);
  std::string Word();
  std::string Choice(const std::vector<std::string>& all);
  std::string Digits(int least, int most);
  Part Value(int depth);
  Part Object(int depth);
  std::size_t Below(std::size_t bound) { return draw_() % bound; }

  std::string recorded_;
  std::mt19937 draw_;
};

}  // namespace penstock::text
