#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "common/status.h"
#include "text/tokenizer.h"
#include "tools/bench/awscurl/answer_text.h"
#include "tools/bench/awscurl/load.h"

namespace penstock::bench::awscurl {
namespace {

absl::StatusOr<Counter> MakeCounter(const Options& options) {
  if (!options.count_tokens || options.tokenizer.empty()) return Counter(&CountWords);
  auto loaded = text::Tokenizer::Load(options.tokenizer);
  if (!loaded.ok()) {
    return absl::InvalidArgumentError("TOKENIZER " + options.tokenizer +
                                      ": must be a model's folder: " + Message(loaded.status()));
  }
  return Counter([tokenizer = *std::move(loaded)](std::string_view text) -> std::size_t {
    const auto ids = tokenizer->Encode(text, false);
    return ids.ok() ? ids->size() : 0;
  });
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "penstock-bench: error: %s\n", Message(status).c_str());
  return code;
}

void Print(const Options& options, const Result& result) {
  const std::string text = options.json ? ToJson(result) + "\n" : ToText(result);
  if (options.json_path.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    std::ofstream(options.json_path) << text;
  }
}

}  // namespace

int Main(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument != "-h" && argument != "--help") continue;
    std::fputs(HelpText().c_str(), stdout);
    return 0;
  }
  const char* tokenizer = std::getenv("TOKENIZER");
  const auto options = ParseOptions(arguments, tokenizer == nullptr ? "" : tokenizer);
  if (!options.ok()) return Fail(options.status(), 2);
  const auto counter = MakeCounter(*options);
  if (!counter.ok()) return Fail(counter.status(), 2);
  const auto result = Run(*options, *counter);
  if (!result.ok()) return Fail(result.status(), 1);
  Print(*options, *result);
  return result->failed == 0 ? 0 : 1;
}

}  // namespace penstock::bench::awscurl
