// Options of penstock-bench. One run is one load shape against one server.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/server_stream.h"

namespace penstock::bench {

enum class Api : std::uint8_t { kTgi, kOpenAiChat, kOpenAiCompletions };

struct LoadOptions {
  ServerUrl server;
  TlsTrust trust;
  Api api = Api::kTgi;
  double rate = 0;                // requests/s of a Poisson process; 0 = closed loop
  std::uint32_t concurrency = 8;  // closed loop: requests in flight; open loop: the most allowed
  std::uint32_t requests = 100;   // total, after warm-up
  std::uint32_t warmup = 0;       // requests before, not counted
  std::uint32_t max_new_tokens = 64;
  std::uint32_t prompt_words = 32;    // words of a made prompt; ignored when prompts are given
  std::vector<std::string> prompts;   // taken in turn
  std::optional<double> temperature;  // absent: greedy
  std::uint64_t seed = 1;
  std::chrono::milliseconds timeout{120'000};  // of one request
  std::string model;  // of OpenAI bodies; empty: the first of GET /v1/models
  std::string api_key;
  std::vector<int> server_pids;  // their CPU time is reported per token
  std::string output;            // JSON file; empty = standard output
  bool progress = true;
};

struct CommandLine {
  absl::StatusOr<LoadOptions>
      config;         // Cancelled: everything was printed already (--help, bad options)
  int exit_code = 0;  // when there is no config
};

CommandLine ReadCommandLine(int argc, char** argv);

// Removes `--preset NAME` or `--preset=NAME` and returns NAME.
std::optional<std::string> TakePreset(std::vector<std::string>& arguments);

}  // namespace penstock::bench
