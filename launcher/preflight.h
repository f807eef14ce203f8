// Checks before any process starts. Each error is one line.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "common/options/values.h"
#include "launcher/launch_plan.h"

namespace penstock::launcher {

// The error of a failed check, and its exit code (common/exit_codes.h).
struct Problem {
  int exit_code = 0;
  std::string error;  // empty: none
};

// Checks, in this order: options of simulated shards, the folder of sockets, the folder of torch,
// the model's folder, lengths and heads of the model against the options, the device, and the
// address.
Problem CheckBeforeStart(const options::Values& values, const Machine& machine);

// A warning for each GPU option that is set without a GPU, and for a permission of
// text-generation-inference that no engine uses.
std::vector<std::string> DeviceWarnings(const options::Values& values, const Machine& machine);

// The programs that read the folder: the router and the shards, the router and transformers, or the
// router alone.
enum class ModelUse { kWeights, kTransformers, kTokenizer };

// The folder has a readable tokenizer.json and, unless for kTokenizer, a config.json (a JSON object
// with model_type), and for kWeights a safetensors file.
absl::Status CheckModelFolder(const std::string& folder, ModelUse use);

// The folder of a given --shard-uds-path is private, missing, or the option is empty.
absl::Status CheckSocketPrefix(const std::string& prefix);

// PENSTOCK_TORCH_DIR holds the library of torch that a shard loads. `folder` is its value; null or
// empty means unset.
absl::Status CheckTorchFolder(const char* folder);

// Binds host and port for a moment; port 0 is any free port. Another process may still take the
// port before the router does, and then the router reports the error. If the port is taken, the
// error tells a Penstock server from another program, which may take two seconds.
absl::Status CheckAddress(const std::string& host, int port);

}  // namespace penstock::launcher
