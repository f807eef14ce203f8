#include "shard/app/memory_report.h"

#include <boost/json/object.hpp>
#include <cstdio>
#include <utility>

#include "common/exit_codes.h"
#include "common/json_text.h"
#include "common/status.h"
#include "shard/app/platform.h"
#include "shard/app/shard_options.h"
#include "shard/executor/model_rank.h"

namespace penstock::shard {

absl::StatusOr<std::string> MemoryReport(const options::Values& values) {
  PENSTOCK_ASSIGN_OR_RETURN(Platform platform, OpenPlatform(values, ""));
  const auto describe = platform.describe_backend;
  ModelRank rank(ReadShardOptions(values, std::move(platform), ""));
  PENSTOCK_ASSIGN_OR_RETURN(const RankPlan plan, rank.Plan());
  const Model& model = rank.model();
  std::string backend;
  if (describe) {
    PENSTOCK_ASSIGN_OR_RETURN(backend, describe(model));
  }
  const auto fits = DescribeMemoryPlan(plan.needs, plan.memory.free_bytes);
  const MemoryNeeds& needs = plan.needs;
  const boost::json::object report{{"model_type", model.spec.model_type},
                                   {"dtype", std::string(DTypeName(model.dtype))},
                                   {"backend", backend},
                                   {"parameters", model.parameters},
                                   {"max_position", model.spec.max_position},
                                   {"weights", needs.weight_bytes},
                                   {"scratch", needs.scratch_bytes},
                                   {"kv_per_token", needs.kv_bytes_per_token},
                                   {"window", needs.window},
                                   {"window_kv_per_sequence", needs.window_bytes},
                                   {"state_per_sequence", needs.state_bytes},
                                   {"free", plan.memory.free_bytes},
                                   {"limit", plan.memory.limit},
                                   {"problem", Message(fits.status())}};
  return JsonText(report);
}

int PrintMemoryReport(const options::Values& values) {
  const auto report = MemoryReport(values);
  if (report.ok()) {
    std::puts(report->c_str());
    return kExitOk;
  }
  std::fprintf(stderr, "%s\n", Message(report.status()).c_str());
  return kExitModel;
}

}  // namespace penstock::shard
