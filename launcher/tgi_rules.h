// Translates options of text-generation-inference into those of Penstock before any process starts.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <string>

#include "common/options/values.h"

namespace penstock::launcher {

// --sharded becomes --num-shard, and --disable-custom-kernels becomes --backend. Under the name
// text-generation-launcher a --hostname that is not an address becomes 0.0.0.0, with a warning,
// since a container sets HOSTNAME to its id. `gpus` is the number of GPUs that this process may
// use. InvalidArgument names an option that cannot be translated.
absl::Status ApplyTgiRules(options::Values& values, std::size_t gpus);

bool IsIpAddress(const std::string& text);

}  // namespace penstock::launcher
