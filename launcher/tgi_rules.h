// Options of text-generation-inference that are put into Penstock's own before anything starts.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <string>

#include "common/options/values.h"

namespace penstock::launcher {

// --sharded becomes --num-shard, --disable-custom-kernels becomes --backend; under the name
// text-generation-launcher a --hostname that is no address becomes 0.0.0.0, with a warning (in a
// container HOSTNAME is its id). `gpus`: how many this process may use. InvalidArgument names the
// option that cannot be.
absl::Status ApplyTgiRules(options::Values& values, std::size_t gpus);

bool IsIpAddress(const std::string& text);

}  // namespace penstock::launcher
