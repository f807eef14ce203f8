#include "tools/plan/launcher_config.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>

#include "scheduler/order/order_policy.h"
#include "tools/plan/plan_report.h"

namespace penstock::plan {
namespace {

constexpr std::uint32_t kMostRequests = 65536;

// YAML's form that needs no escapes but one.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string LauncherConfig(const PlanOptions& options, const Plan& plan) {
  const Setting& setting = plan.setting;
  const MachineType& machine = *setting.type->machine;
  const auto ranks = static_cast<std::uint32_t>(setting.type->ranks);
  const std::uint32_t here = std::min(setting.groups, machine.per_host / ranks);
  std::string text = "# penstock-plan: " + setting.Text() + "\n";
  text += absl::StrFormat("# %s: goodput %.2f requests/s\n", Describe(options.goal), plan.goodput);
  if (here < setting.groups) {
    text += absl::StrFormat("# %u groups in all: start this on %u hosts, the last with the rest\n",
                            setting.groups, (setting.groups + here - 1) / here);
  }
  if (options.model.folder) {
    text += "model_id: " + Quoted(options.model.name) + "\n";
  } else {
    text +=
        "# model_id: a folder or a Hugging Face model of the shape " + options.model.name + "\n";
  }
  text += absl::StrFormat("num_shard: %u\nnum_replicas: %u\nmax_step_tokens: %u\n", ranks, here,
                          setting.step_tokens);
  text += "order: " + std::string(OrderName(setting.order)) + "\n";
  text += "admission: " + std::string(AdmissionName(setting.admission)) + "\n";
  text += absl::StrFormat("max_batch_size: %u\n", options.slots);
  // As many wait as run, so that a burst is not refused.
  text += absl::StrFormat("max_concurrent_requests: %u\n",
                          std::min(2 * options.slots * here, kMostRequests));
  if (machine.kv_memory > 0) {
    text +=
        absl::StrFormat("kv_cache_memory: %.0f\n", std::floor(machine.kv_memory * ranks * here));
  }
  if (machine.fp8) text += "quantize: fp8\n";
  return text;
}

}  // namespace penstock::plan
