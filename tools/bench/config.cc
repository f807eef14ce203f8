#include "tools/bench/config.h"

#include <CLI/CLI.hpp>
#include <boost/json/parse.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <cstdlib>
#include <fstream>
#include <map>

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

}  // namespace

absl::StatusOr<Config> ParseCommandLine(int argc, char** argv) {
  Config config;
  std::string url = "http://127.0.0.1:3000";
  std::string prompt_file;
  std::uint64_t timeout_ms = 120'000;
  bool quiet = false;
  CLI::App app{
      "Load generator for Penstock and compatible servers.\n"
      "Open loop (--rate): arrivals are a Poisson process and latencies count from the arrival,\n"
      "so a slow server can not slow the load down. Closed loop: --concurrency requests at a "
      "time."};
  const std::map<std::string, Api> apis = {{"tgi", Api::kTgi},
                                           {"openai-chat", Api::kOpenAiChat},
                                           {"openai-completions", Api::kOpenAiCompletions}};
  app.add_option("--url", url, "Server")->capture_default_str();
  std::string api = "tgi";
  app.add_option("--api", api, "Dialect of the requests")
      ->check(CLI::IsMember(apis))
      ->capture_default_str();
  app.add_option("--rate", config.rate, "Requests per second (open loop); 0 = closed loop")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--concurrency", config.concurrency, "Requests in flight at most")
      ->check(CLI::Range(1u, 65536u))
      ->capture_default_str();
  app.add_option("--requests", config.requests, "Counted requests")
      ->check(CLI::Range(1u, 10'000'000u))
      ->capture_default_str();
  app.add_option("--warmup", config.warmup, "Requests before the counted ones");
  app.add_option("--max-new-tokens", config.max_new_tokens, "Tokens per answer")
      ->check(CLI::Range(1u, 1'000'000u))
      ->capture_default_str();
  app.add_option("--prompt-words", config.prompt_words, "Words per made prompt")
      ->check(CLI::Range(1u, 1'000'000u))
      ->capture_default_str();
  app.add_option("--prompts", prompt_file, "File with one prompt per line (text or JSON string)");
  app.add_option("--temperature", config.temperature, "Sampling temperature; absent = greedy")
      ->check(CLI::Range(0.01, 100.0));
  app.add_option("--seed", config.seed, "Seed of arrivals and prompts")->capture_default_str();
  app.add_option("--timeout-ms", timeout_ms, "Deadline of one request")
      ->check(CLI::Range(1u, 86'400'000u))
      ->capture_default_str();
  app.add_option("--model", config.model, "Model name in OpenAI bodies")->capture_default_str();
  app.add_option("--api-key", config.api_key, "Bearer token");
  app.add_option("--server-pid", config.server_pids,
                 "Process whose CPU time is reported per token (repeatable)");
  app.add_option("--output", config.output, "Write the JSON report here, not to standard output");
  app.add_flag("--quiet", quiet, "No progress bar");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  config.api = apis.at(api);
  config.timeout = std::chrono::milliseconds(timeout_ms);
  config.progress = !quiet;
  PENSTOCK_RETURN_IF_ERROR(ApplyUrl(url, config));
  if (!prompt_file.empty()) PENSTOCK_RETURN_IF_ERROR(ReadPrompts(prompt_file, config));
  return config;
}

}  // namespace penstock::bench
