#include "cli/memory_needs.h"

#include <boost/json/object.hpp>

#include "common/json_parse.h"
#include "common/status.h"
#include "launcher/shard_output.h"

namespace penstock::cli {
namespace {

std::string LastLine(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

std::string Text(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value == nullptr || !value->is_string() ? "" : std::string(value->as_string());
}

std::uint64_t Number(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value == nullptr || !value->is_number() ? 0 : value->to_number<std::uint64_t>();
}

}  // namespace

absl::StatusOr<MemoryNeeds> ParseMemoryPlan(const std::string& line, std::uint64_t ranks) {
  constexpr std::size_t kMaxDepth = 4;
  PENSTOCK_ASSIGN_OR_RETURN(const auto json, ParseJson(line, kMaxDepth));
  if (!json.is_object()) return absl::InvalidArgumentError(line);
  const boost::json::object& report = json.as_object();
  MemoryNeeds needs;
  needs.model_type = Text(report, "model_type");
  needs.dtype = Text(report, "dtype");
  needs.backend = Text(report, "backend");
  needs.parameters = Number(report, "parameters");
  needs.max_position = Number(report, "max_position");
  needs.ranks = ranks;
  needs.weights = ranks * Number(report, "weights");
  needs.scratch = ranks * Number(report, "scratch");
  needs.kv_per_token = ranks * Number(report, "kv_per_token");
  needs.window = Number(report, "window");
  needs.window_kv_per_sequence = ranks * Number(report, "window_kv_per_sequence");
  needs.state_per_sequence = ranks * Number(report, "state_per_sequence");
  needs.free = Number(report, "free");
  needs.limit = Text(report, "limit");
  needs.problem = Text(report, "problem");
  return needs;
}

absl::StatusOr<MemoryNeeds> AskMemoryNeeds(const options::Values& values,
                                           const launcher::Machine& machine) {
  PENSTOCK_ASSIGN_OR_RETURN(const launcher::ChildOutput said,
                            launcher::AskShard(values, machine, "--memory-plan"));
  const std::string line = LastLine(said.text);
  if (!said.exit) return absl::DeadlineExceededError("the shard did not answer in 10 s");
  if (said.exit->by_signal || said.exit->code != 0) {
    return absl::InvalidArgumentError(line.empty() ? "the shard " + said.exit->Describe() : line);
  }
  const auto ranks = values.GetInt("num-shard") * values.GetInt("num-replicas");
  return ParseMemoryPlan(line, static_cast<std::uint64_t>(ranks));
}

}  // namespace penstock::cli
