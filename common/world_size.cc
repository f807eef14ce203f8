#include "common/world_size.h"

#include <string>
#include <string_view>

#include "common/status.h"

namespace penstock {
namespace {

absl::Status Misfit(std::uint64_t world, std::string_view rule, std::uint64_t size,
                    std::string_view what) {
  const std::string limit =
      std::string(rule) + " of the model's " + std::to_string(size) + " " + std::string(what);
  // By the name that operators write.
  return absl::UnimplementedError(Message(BadValue("num-shard", std::to_string(world), limit)));
}

}  // namespace

absl::Status CheckWorldSize(std::uint64_t world, const CutSizes& sizes) {
  if (sizes.heads % world != 0) return Misfit(world, "a divisor", sizes.heads, "attention heads");
  if (sizes.intermediate % world != 0) {
    return Misfit(world, "a divisor", sizes.intermediate, "FFN columns");
  }
  if (sizes.kv_heads % world == 0 || world % sizes.kv_heads == 0) return absl::OkStatus();
  return Misfit(world, "a divisor or a multiple", sizes.kv_heads, "K/V heads");
}

}  // namespace penstock
