#include "tools/bench/load_options.h"

#include <boost/json/parse.hpp>
#include <charconv>
#include <fstream>
#include <system_error>

#include "common/bad_option.h"
#include "common/options/values.h"
#include "common/status.h"

namespace penstock::bench {
namespace {

absl::Status ApplyUrl(const std::string& text, LoadOptions& config) {
  const auto url = ParseServerUrl(text);
  if (!url) return BadOption("url", text, "http://HOST[:PORT] or https://HOST[:PORT]");
  config.server = *url;
  return absl::OkStatus();
}

// One prompt a line; a line that is a JSON string is unescaped.
absl::Status ReadPrompts(const std::string& path, LoadOptions& config) {
  std::ifstream file(path);
  if (!file) return BadOption("prompts", path, "a readable file with one prompt per line");
  for (std::string line; std::getline(file, line);) {
    boost::system::error_code error;
    const auto value = boost::json::parse(line, error);
    if (!error && value.is_string()) line = std::string(value.as_string());
    if (!line.empty()) config.prompts.push_back(line);
  }
  if (config.prompts.empty()) return BadOption("prompts", path, "a file with at least one prompt");
  return absl::OkStatus();
}

using options::OptionSpec;
using options::Type;

constexpr OptionSpec kRows[] = {
    OptionSpec("url", Type::kString, "http://127.0.0.1:3000",
               "Server: http://HOST[:PORT] or https://HOST[:PORT]."),
    OptionSpec("ca-file", Type::kPath, "",
               "PEM file with the certificates that an https server's must come from. Unset: those "
               "that the system trusts."),
    OptionSpec("insecure", Type::kBool, "false", "Do not check an https server's certificate."),
    OptionSpec("api", options::OneOf("tgi|openai-chat|openai-completions"), "tgi",
               "Dialect of the requests; always streamed."),
    OptionSpec("rate", options::Float(0, 1e6), "0",
               "Open loop: requests per second of a Poisson process; latencies count from the "
               "arrival, so a slow server cannot slow the load down. 0: closed loop."),
    OptionSpec("concurrency", options::Int(1, 65536), "8",
               "Requests in flight (closed loop), or their maximum number (open loop)."),
    OptionSpec("requests", options::Int(1, 1e7), "100", "Counted requests."),
    OptionSpec("warmup", options::Int(0, 1e7), "0", "Requests before the counted ones."),
    OptionSpec("max-new-tokens", options::Int(1, 1e6), "64",
               "Maximum number of tokens of an answer."),
    OptionSpec("prompt-words", options::Int(1, 1e6), "32", "Words of a generated prompt."),
    OptionSpec("prompts", Type::kPath, "",
               "File with one prompt a line, plain or as JSON string, taken in turn."),
    OptionSpec("temperature", options::Float(0.01, 100), "",
               "Sampling temperature. Unset: greedy."),
    OptionSpec("seed", options::Int(0), "1", "Seed of arrivals and generated prompts."),
    OptionSpec("timeout", options::Duration(0.001, 86400), "120s", "Deadline of one request."),
    OptionSpec("model", Type::kString, "",
               "Model name in OpenAI bodies. Unset: the first name that GET /v1/models gives."),
    OptionSpec("api-key", Type::kString, "", "Bearer token."),
    OptionSpec("server-pid", Type::kList, "", "Processes whose CPU time is reported per token."),
    OptionSpec(
        "output", Type::kPath, "",
        "File for the report as JSON. Unset: standard output gets the JSON, or a table if it is a "
        "terminal."),
    OptionSpec("progress", Type::kBool, "true",
               "Progress bar on standard error, if that is a terminal."),
};

absl::StatusOr<std::vector<int>> ReadPids(const std::vector<std::string>& texts) {
  std::vector<int> pids;
  for (const std::string& text : texts) {
    int pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (error != std::errc() || *end != 0 || pid < 1) {
      return BadOption("server-pid", text, "a process id");
    }
    pids.push_back(pid);
  }
  return pids;
}

Api ToApi(const std::string& name) {
  if (name == "openai-chat") return Api::kOpenAiChat;
  return name == "tgi" ? Api::kTgi : Api::kOpenAiCompletions;
}

absl::StatusOr<LoadOptions> ToOptions(const options::Values& values) {
  const auto count = [&](std::string_view name) {
    return static_cast<std::uint32_t>(values.GetInt(name));
  };
  LoadOptions config;
  config.api = ToApi(values.GetString("api"));
  config.rate = values.GetDouble("rate");
  config.concurrency = count("concurrency");
  config.requests = count("requests");
  config.warmup = count("warmup");
  config.max_new_tokens = count("max-new-tokens");
  config.prompt_words = count("prompt-words");
  if (values.HasValue("temperature")) config.temperature = values.GetDouble("temperature");
  config.seed = static_cast<std::uint64_t>(values.GetInt("seed"));
  config.timeout =
      std::chrono::duration_cast<std::chrono::milliseconds>(values.GetDuration("timeout"));
  config.model = values.GetString("model");
  config.api_key = values.GetString("api-key");
  config.output = values.GetString("output");
  config.progress = values.GetBool("progress");
  PENSTOCK_ASSIGN_OR_RETURN(config.server_pids, ReadPids(values.GetList("server-pid")));
  config.trust = {values.GetString("ca-file"), values.GetBool("insecure")};
  PENSTOCK_RETURN_IF_ERROR(ApplyUrl(values.GetString("url"), config));
  if (values.HasValue("prompts")) {
    PENSTOCK_RETURN_IF_ERROR(ReadPrompts(values.GetString("prompts"), config));
  }
  return config;
}

}  // namespace

CommandLine ReadCommandLine(int argc, char** argv) {
  const auto program = options::ProgramWith(
      "penstock-bench",
      "Load generator for Penstock and compatible servers. `penstock-bench effective` compares "
      "batching modes, `penstock-bench --preset awscurl` takes awscurl's options and writes its "
      "report; both have options of their own.",
      kRows);
  const options::CommandLine line = options::ReadCommandLine(program, argc, argv);
  if (line.exit_code.has_value()) return {absl::CancelledError(), *line.exit_code};
  absl::StatusOr<LoadOptions> config = ToOptions(line.values);
  return {config, config.ok() ? 0 : 2};
}

std::optional<std::string> TakePreset(std::vector<std::string>& arguments) {
  const std::string option = "--preset";
  for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
    std::string name;
    if (argument->starts_with(option + "=")) {
      name = argument->substr(option.size() + 1);
    } else if (*argument != option) {
      continue;
    } else if (argument + 1 != arguments.end()) {
      argument = arguments.erase(argument);
      name = *argument;
    }
    arguments.erase(argument);
    return name;
  }
  return std::nullopt;
}

}  // namespace penstock::bench
