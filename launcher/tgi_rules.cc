#include "launcher/tgi_rules.h"

#include <arpa/inet.h>

#include "common/log.h"
#include "common/status.h"

namespace penstock::launcher {
namespace {

using options::Values;

absl::Status ApplySharded(Values& values, std::size_t gpus) {
  const std::string& sharded = values.GetString("sharded");
  const bool has_count = values.IsSet("num-shard");
  const bool by_gpus =
      sharded == "true" || (sharded.empty() && values.program().profile != nullptr &&
                            values.GetString("device") == "cuda");
  if (by_gpus && !has_count && gpus > 1) {
    PENSTOCK_RETURN_IF_ERROR(values.Set("num-shard", std::to_string(gpus)));
  }
  if (sharded == "true" && values.GetInt("num-shard") < 2) {
    return absl::InvalidArgumentError(
        "--sharded true: must come with --num-shard of at least 2, or with as many GPUs. Given: "
        "--num-shard " +
        values.TextOf("num-shard") + ", " + std::to_string(gpus) + " GPUs");
  }
  return absl::OkStatus();
}

absl::Status ApplyKernels(Values& values) {
  if (!values.GetBool("disable-custom-kernels")) return absl::OkStatus();
  if (values.IsSet("backend") && values.GetString("backend") != "reference") {
    return absl::InvalidArgumentError(
        "--disable-custom-kernels: is --backend reference, and must not come with --backend " +
        values.GetString("backend"));
  }
  return values.Set("backend", "reference");
}

absl::Status ApplyHostname(Values& values) {
  const std::string host = values.GetString("hostname");
  if (values.program().profile == nullptr || IsIpAddress(host)) return absl::OkStatus();
  log::Warn("--hostname " + host + ": is no address; listening on 0.0.0.0");
  return values.Set("hostname", "0.0.0.0");
}

}  // namespace

bool IsIpAddress(const std::string& text) {
  in6_addr address = {};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

absl::Status ApplyTgiRules(Values& values, std::size_t gpus) {
  PENSTOCK_RETURN_IF_ERROR(ApplySharded(values, gpus));
  PENSTOCK_RETURN_IF_ERROR(ApplyKernels(values));
  return ApplyHostname(values);
}

}  // namespace penstock::launcher
