#include "common/world_size.h"

#include <algorithm>
#include <string>

#include "common/bad_option.h"
#include "common/status.h"

namespace penstock {
namespace {

bool Fits(std::uint64_t world, const CutSize& cut) {
  if (cut.size % world == 0 || (cut.replicated && world % cut.size == 0)) return true;
  return cut.instead > 0 && cut.instead % world == 0;
}

bool AllFit(std::uint64_t world, const std::vector<CutSize>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(),
                     [world](const CutSize& cut) { return Fits(world, cut); });
}

// "1, 2 or 4".
std::string FittingSizes(const std::vector<CutSize>& sizes) {
  std::vector<std::string> fitting;
  for (std::uint64_t world = 1; world <= sizes.front().size; ++world) {
    if (AllFit(world, sizes)) fitting.push_back(std::to_string(world));
  }
  std::string text;
  for (std::size_t i = 0; i < fitting.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == fitting.size() ? " or " : ", ") + fitting[i];
  }
  return text;
}

}  // namespace

absl::Status CheckWorldSize(std::uint64_t world, const std::vector<CutSize>& sizes) {
  const auto misfit = std::find_if(sizes.begin(), sizes.end(),
                                   [world](const CutSize& cut) { return !Fits(world, cut); });
  if (misfit == sizes.end()) return absl::OkStatus();
  std::string limit = misfit->replicated ? "a divisor or a multiple" : "a divisor";
  limit.append(" of the model's ").append(std::to_string(misfit->size)).append(" ");
  limit.append(misfit->what);
  const std::string fitting = FittingSizes(sizes);
  if (!fitting.empty()) limit += ": " + fitting;
  // By the name that operators write.
  return absl::UnimplementedError(Message(BadOption("num-shard", std::to_string(world), limit)));
}

}  // namespace penstock
