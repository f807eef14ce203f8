// Writes generated transcripts, each with the answer that Penstock's scanner reads in it.
// tests/conformance/test_other_parsers.py compares the answers with those of other parsers.
#include <boost/json.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "router/answer/format.h"
#include "tests/bench/usage.h"
#include "tests/unit/router/answer/read_answer.h"
#include "tests/unit/router/answer/transcripts.h"

namespace penstock::router::answer {
namespace {

constexpr char kUsage[] =
    "usage: penstock_transcripts FORMAT COUNT SEED\n\n"
    "Writes the tools as one line of JSON, then COUNT transcripts with Penstock's answers.\n";

boost::json::object ToJson(const Answer& answer) {
  boost::json::array calls;
  for (const Call& call : answer.calls) {
    calls.push_back({{"name", call.name}, {"arguments", call.arguments}});
  }
  return {{"text", answer.text}, {"reasoning", answer.reasoning}, {"calls", std::move(calls)}};
}

void Print(const boost::json::value& value) { std::puts(boost::json::serialize(value).c_str()); }

int Main(const char* name, std::uint64_t count, std::uint64_t seed) {
  const Format* format = FindFormat(name);
  if (format == nullptr) {
    std::fprintf(stderr, "error: FORMAT %s: unknown\n", name);
    return 1;
  }
  Print(boost::json::parse(testing::kSampleToolsJson));
  std::mt19937_64 random(seed);
  for (std::uint64_t i = 0; i < count; ++i) {
    const testing::Script script = testing::RandomScript(*format, random);
    const std::string text = testing::Write(*format, script);
    Print({{"transcript", text},
           {"last_text", script.last_text},
           {"answer", ToJson(testing::ReadAnswer(name, text, testing::SampleTools()))}});
  }
  return 0;
}

}  // namespace
}  // namespace penstock::router::answer

int main(int argc, char** argv) {
  const char* const usage = penstock::router::answer::kUsage;
  if (const auto exit = penstock::bench::ExitOfArguments(argc, argv, usage)) return *exit;
  if (argc != 4) {
    std::fputs(usage, stderr);
    return 2;
  }
  return penstock::router::answer::Main(
      argv[1], penstock::bench::NumberArgument<std::uint64_t>("COUNT", argv[2]),
      penstock::bench::NumberArgument<std::uint64_t>("SEED", argv[3], 0));
}
