// penstock-replay lengths LOG
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/json.hpp>

#include "common/exit_codes.h"
#include "common/json_text.h"
#include "common/options/spec.h"
#include "common/options/values.h"
#include "common/status.h"
#include "scheduler/log/input_log.h"
#include "scheduler/scheduler.h"
#include "tools/replay/commands.h"
#include "tools/replay/input_file.h"
#include "tools/replay/report.h"

namespace penstock::replay {
namespace {

namespace json = boost::json;

// Runs the core on the inputs of a log and prints a line for each answer that ended by itself.
class Lengths {
 public:
  explicit Lengths(const scheduler::Config& config) : core_(config) {}

  void Take(const scheduler::Input& input) {
    if (const auto* arrival = std::get_if<scheduler::Arrival>(&input.what)) {
      open_[arrival->request] = *arrival;
    }
    out_.Clear();
    core_.Apply(input, out_);
    for (const scheduler::Event& event : out_.events) {
      if (const auto* finished = std::get_if<scheduler::Finished>(&event.what)) {
        End(event.request, *finished);
      } else if (std::holds_alternative<scheduler::Failed>(event.what)) {
        open_.erase(event.request);
      }
    }
  }

 private:
  void End(RequestId request, const scheduler::Finished& finished) {
    const auto node = open_.extract(request);
    if (node.empty() || finished.reason == FinishReason::kCancelled) return;
    const scheduler::Arrival& arrival = node.mapped();
    json::array prompt(arrival.prompt.begin(), arrival.prompt.end());
    const json::object line = {
        {"prompt", std::move(prompt)},
        {"max_new_tokens", arrival.max_new_tokens},
        {"length_given", arrival.length_given},
        {"request_class", static_cast<int>(arrival.request_class)},
        {"generated", finished.generated_tokens},
        {"cut", finished.reason == FinishReason::kLength},
    };
    std::printf("%s\n", JsonText(line).c_str());
  }

  scheduler::Scheduler core_;
  scheduler::Outputs out_;
  std::map<RequestId, scheduler::Arrival> open_;
};

int PrintLengths(const std::string& program, const std::string& path) {
  const auto text = ReadInputFile(path);
  if (!text.ok()) return Complain(program, Message(text.status()), kExitUsage);
  scheduler::InputLogReader log(*text);
  const auto config = log.ReadHeader();
  if (!config) return Complain(program, path + ": " + log.error(), kExitUsage);
  if (const auto why = WhyInvalid(*config)) {
    return Complain(program, path + ": " + *why, kExitUsage);
  }
  Lengths lengths(*config);
  while (const auto input = log.Next()) lengths.Take(*input);
  if (log.error().empty()) return kExitOk;
  return Complain(program, path + ": " + log.error(), kExitFailure);
}

}  // namespace

int LengthsCommand(int argc, const char* const* argv) {
  std::vector<const char*> rest(argv, argv + argc);
  const std::string path = TakeSource(rest);
  const auto table = options::ProgramWith(
      argv[0],
      "LOG: prints the prompt and the output length of each answer in an input log "
      "(penstock-router --record), one JSON object a line, for tools/rank.",
      std::span<const options::OptionSpec>());
  const options::CommandLine line =
      options::ReadCommandLine(table, static_cast<int>(rest.size()), rest.data());
  if (line.exit_code.has_value()) return *line.exit_code;
  if (path.empty()) return Complain(argv[0], "give the input log after the command", kExitUsage);
  return PrintLengths(argv[0], path);
}

}  // namespace penstock::replay
