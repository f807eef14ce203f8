// What can be seen to be wrong before any process is started. Each error is one line.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "common/options/values.h"
#include "launcher/launch_plan.h"

namespace penstock::launcher {

// A failed check and the exit code that goes with it (common/exit_codes.h).
struct Problem {
  int exit_code = 0;
  std::string error;  // empty: none
};

// Options for simulated shards only, the sockets' folder, the model's, its lengths and heads
// against the options, the device and the address, in this order.
Problem CheckBeforeStart(const options::Values& values, const Machine& machine);

// A warning for each option that asks for something of GPUs where none is used.
std::vector<std::string> DeviceWarnings(const options::Values& values, const Machine& machine);

// Who will read the folder: the router and shards with weights, or the router alone.
enum class ModelUse { kWeights, kTokenizer };

// The folder has a readable tokenizer.json and, for kWeights, a config.json (a JSON object with
// model_type) and a safetensors file.
absl::Status CheckModelFolder(const std::string& folder, ModelUse use);

// The folder of a given --shard-uds-path is private, missing, or the option is empty.
absl::Status CheckSocketPrefix(const std::string& prefix);

// Binds host and port for a moment; with port 0, any free one of the host. The router may still
// lose the port to someone else; then the error is its own.
absl::Status CheckAddress(const std::string& host, int port);

}  // namespace penstock::launcher
