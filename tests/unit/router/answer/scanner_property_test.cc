// Streams and plain answers are the same, for every way of cutting generated transcripts of all
// formats. PENSTOCK_TRANSCRIPTS sets how many.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "router/answer/format.h"
#include "router/answer/scanner.h"
#include "tests/unit/router/answer/transcripts.h"

namespace penstock::router::answer {
namespace {

constexpr std::size_t kDefaultTranscripts = 2000;
constexpr int kRandomCuts = 20;

std::size_t Transcripts() {
  const char* text = std::getenv("PENSTOCK_TRANSCRIPTS");
  return text == nullptr ? kDefaultTranscripts : std::strtoull(text, nullptr, 10);
}

// The answer of a text that comes in pieces which end at these places.
class Reading {
 public:
  explicit Reading(const Format& format)
      : scanner_(format, {.tools = testing::SampleTools(), .prompt_end = {}}) {}

  void Feed(std::string_view piece) {
    scanner_.Feed(piece, events_);
    Collect();
  }
  Answer Finish() {
    scanner_.Finish(events_);
    Collect();
    return std::move(answer_);
  }

 private:
  // Deltas of different pieces do not meet in the list of events.
  void Collect() {
    for (const Event& event : events_) answer_.Add(event);
    events_.clear();
  }

  Scanner scanner_;
  std::vector<Event> events_;
  Answer answer_;
};

Answer ReadWhole(const Format& format, std::string_view text) {
  Reading reading(format);
  reading.Feed(text);
  return reading.Finish();
}

Answer ReadInTwo(const Format& format, std::string_view text, std::size_t cut) {
  Reading reading(format);
  reading.Feed(text.substr(0, cut));
  reading.Feed(text.substr(cut));
  return reading.Finish();
}

Answer ReadBytes(const Format& format, std::string_view text) {
  Reading reading(format);
  for (std::size_t i = 0; i < text.size(); ++i) reading.Feed(text.substr(i, 1));
  return reading.Finish();
}

Answer ReadPieces(const Format& format, std::string_view text, std::mt19937_64& random) {
  Reading reading(format);
  while (!text.empty()) {
    const std::size_t size = 1 + random() % 12;
    reading.Feed(text.substr(0, size));
    text.remove_prefix(std::min(size, text.size()));
  }
  return reading.Finish();
}

std::string Show(const Answer& answer) {
  std::string out = "reasoning: " + answer.reasoning + "\ntext: " + answer.text;
  for (const Call& call : answer.calls) out += "\ncall: " + call.name + " " + call.arguments;
  return out;
}

// Whether all ways of cutting the text give the same answer.
::testing::AssertionResult CutsAgree(const Format& format, std::string_view text,
                                     std::mt19937_64& random) {
  const Answer whole = ReadWhole(format, text);
  const auto differs = [&](const Answer& other, const std::string& how) {
    return ::testing::AssertionFailure() << format.name << ", " << how << ":\n"
                                         << text << "\n--- plain\n"
                                         << Show(whole) << "\n--- stream\n"
                                         << Show(other);
  };
  if (const Answer other = ReadBytes(format, text); other != whole) return differs(other, "bytes");
  for (std::size_t cut = 1; cut < text.size(); ++cut) {
    const Answer other = ReadInTwo(format, text, cut);
    if (other != whole) return differs(other, "cut at " + std::to_string(cut));
  }
  for (int i = 0; i < kRandomCuts; ++i) {
    const Answer other = ReadPieces(format, text, random);
    if (other != whole) return differs(other, "random pieces");
  }
  return ::testing::AssertionSuccess();
}

// A prefix of the text that ends between two characters.
std::string_view Truncated(std::string_view text, std::mt19937_64& random) {
  std::size_t size = random() % (text.size() + 1);
  while (size < text.size() && (text[size] & 0xC0) == 0x80) ++size;
  return text.substr(0, size);
}

TEST(ScannerProperty, StreamsAndPlainAnswersAreTheSame) {
  std::mt19937_64 random(20261127);
  const auto formats = Formats();
  for (std::size_t i = 0; i < Transcripts(); ++i) {
    const Format& format = *formats[i % formats.size()];
    const testing::Script script = testing::RandomScript(format, random);
    const std::string text = testing::Write(format, script);
    const Answer answer = ReadWhole(format, text);
    ASSERT_EQ(Show(answer), Show(script.Expected())) << format.name << ":\n" << text;
    ASSERT_TRUE(CutsAgree(format, text, random)) << "transcript " << i;
    ASSERT_TRUE(CutsAgree(format, Truncated(text, random), random)) << "transcript " << i;
  }
}

// Markers and parts of them in any order, which no model writes.
TEST(ScannerProperty, StreamsAndPlainAnswersOfNonsenseAreTheSame) {
  constexpr std::string_view kParts[] = {
      " ",        "\n",          "{",
      "}",        "[",           "]",
      "(",        ")",           "\"",
      "'",        "\\",          ",",
      ":",        "=",           "a",
      "é",        "get_weather", "{\"name\": \"get_weather\", \"arguments\": ",
      "\"city\"", "city",        "\\ud83d",
      "1",        "True",        "null"};
  std::mt19937_64 random(7);
  const auto formats = Formats();
  for (std::size_t i = 0; i < Transcripts(); ++i) {
    const Format& format = *formats[i % formats.size()];
    const std::vector<std::string> markers = MarkersOf(format);
    const std::string sample = testing::Write(format, testing::RandomScript(format, random));
    std::string text;
    for (std::size_t n = random() % 12; n > 0; --n) {
      const std::size_t kind = random() % 3;
      if (kind == 0 && !markers.empty()) {
        text += markers[random() % markers.size()];
      } else if (kind == 1 && !sample.empty()) {
        const std::size_t begin = random() % sample.size();
        text += sample.substr(begin, random() % 40);
      } else {
        text += kParts[random() % std::size(kParts)];
      }
    }
    ASSERT_TRUE(CutsAgree(format, text, random)) << "transcript " << i;
  }
}

}  // namespace
}  // namespace penstock::router::answer
