#include "tools/bench/config.h"

#include <boost/json/parse.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>
#include <fstream>
#include <system_error>

#include "common/options/values.h"
#include "common/status.h"

namespace penstock::bench {
namespace {

absl::Status ApplyUrl(const std::string& text, Config& config) {
  const auto url = boost::urls::parse_uri(text);
  if (!url || url->scheme() != "http" || url->host().empty()) {
    return BadValue("url", text, "http://HOST[:PORT]");
  }
  config.host = url->host();
  config.port = url->has_port() ? url->port_number() : 80;
  return absl::OkStatus();
}

// One prompt a line; a line that is a JSON string is unescaped.
absl::Status ReadPrompts(const std::string& path, Config& config) {
  std::ifstream file(path);
  if (!file) return BadValue("prompts", path, "a readable file with one prompt per line");
  for (std::string line; std::getline(file, line);) {
    boost::system::error_code error;
    const auto value = boost::json::parse(line, error);
    if (!error && value.is_string()) line = std::string(value.as_string());
    if (!line.empty()) config.prompts.push_back(line);
  }
  if (config.prompts.empty()) return BadValue("prompts", path, "a file with at least one prompt");
  return absl::OkStatus();
}

using options::OptionSpec;
using options::Type;

constexpr OptionSpec kRows[] = {
    {.name = "url",
     .type = Type::kString,
     .default_text = "http://127.0.0.1:3000",
     .components = options::kTool,
     .help = "Server."},
    {.name = "api",
     .type = Type::kEnum,
     .default_text = "tgi",
     .choices = "tgi|openai-chat|openai-completions",
     .components = options::kTool,
     .help = "Dialect of the requests; always streamed."},
    {.name = "rate",
     .type = Type::kFloat,
     .default_text = "0",
     .min = 0,
     .max = 1e6,
     .components = options::kTool,
     .help = "Open loop: requests per second of a Poisson process; latencies count from the "
             "arrival, so a slow server cannot slow the load down. 0: closed loop."},
    {.name = "concurrency",
     .type = Type::kInt,
     .default_text = "8",
     .min = 1,
     .max = 65536,
     .components = options::kTool,
     .help = "Requests in flight (closed loop), or the most allowed (open loop)."},
    {.name = "requests",
     .type = Type::kInt,
     .default_text = "100",
     .min = 1,
     .max = 1e7,
     .components = options::kTool,
     .help = "Counted requests."},
    {.name = "warmup",
     .type = Type::kInt,
     .default_text = "0",
     .min = 0,
     .max = 1e7,
     .components = options::kTool,
     .help = "Requests before the counted ones."},
    {.name = "max-new-tokens",
     .type = Type::kInt,
     .default_text = "64",
     .min = 1,
     .max = 1e6,
     .components = options::kTool,
     .help = "Maximum number of tokens of an answer."},
    {.name = "prompt-words",
     .type = Type::kInt,
     .default_text = "32",
     .min = 1,
     .max = 1e6,
     .components = options::kTool,
     .help = "Words of a made prompt."},
    {.name = "prompts",
     .type = Type::kPath,
     .components = options::kTool,
     .help = "File with one prompt a line, plain or as JSON string, taken in turn."},
    {.name = "temperature",
     .type = Type::kFloat,
     .min = 0.01,
     .max = 100,
     .components = options::kTool,
     .help = "Sampling temperature. Unset: greedy."},
    {.name = "seed",
     .type = Type::kInt,
     .default_text = "1",
     .min = 0,
     .components = options::kTool,
     .help = "Seed of arrivals and made prompts."},
    {.name = "timeout",
     .type = Type::kDuration,
     .default_text = "120s",
     .min = 0.001,
     .max = 86400,
     .components = options::kTool,
     .help = "Deadline of one request."},
    {.name = "model",
     .type = Type::kString,
     .default_text = "penstock",
     .components = options::kTool,
     .help = "Model name in OpenAI bodies."},
    {.name = "api-key",
     .type = Type::kString,
     .components = options::kTool,
     .help = "Bearer token."},
    {.name = "server-pid",
     .type = Type::kList,
     .components = options::kTool,
     .help = "Processes whose CPU time is reported per token."},
    {.name = "output",
     .type = Type::kPath,
     .components = options::kTool,
     .help = "File for the JSON report. Unset: standard output."},
    {.name = "progress",
     .type = Type::kBool,
     .default_text = "true",
     .components = options::kTool,
     .help = "Progress bar on standard error."},
};

absl::StatusOr<std::vector<int>> ReadPids(const std::vector<std::string>& texts) {
  std::vector<int> pids;
  for (const std::string& text : texts) {
    int pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (error != std::errc() || *end != 0 || pid < 1) {
      return BadValue("server-pid", text, "a process id");
    }
    pids.push_back(pid);
  }
  return pids;
}

Api ToApi(const std::string& name) {
  if (name == "openai-chat") return Api::kOpenAiChat;
  return name == "tgi" ? Api::kTgi : Api::kOpenAiCompletions;
}

absl::StatusOr<Config> ToConfig(const options::Values& values) {
  const auto count = [&](std::string_view name) {
    return static_cast<std::uint32_t>(values.GetInt(name));
  };
  Config config;
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
  absl::StatusOr<Config> config = ToConfig(line.values);
  return {config, config.ok() ? 0 : 2};
}

}  // namespace penstock::bench
