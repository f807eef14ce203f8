#include "router/api/guard.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "router/api/request_cost.h"

namespace penstock::router {
namespace {

std::shared_ptr<const ApiKeys> KeysOf(const ApiContext& context) {
  return context.options.keys == nullptr ? nullptr : context.options.keys->Get();
}

std::string SecondsText(double seconds) {
  const auto tenths = static_cast<std::int64_t>(std::llround(seconds * 10));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

// Seconds until a new request of the tenant is admitted.
double PredictedWait(const ApiContext& context, const std::string& tenant,
                     const TenantLimits* limits, std::uint32_t generations) {
  const SchedulerMetrics& queue = context.metrics.scheduler();
  const std::uint64_t waiting = queue.waiting();
  const std::uint64_t running = queue.running();
  if (waiting == 0) return 0;
  if (limits == nullptr) {
    return context.retry_advice.Wait(static_cast<double>(waiting), static_cast<double>(running));
  }
  const TenantGate::Waits own = context.gate.WaitsOf(tenant, *limits, generations, running);
  return context.retry_advice.Wait(std::min(own.waiting, static_cast<double>(waiting)), own.part);
}

std::optional<ApiError> CheckWait(const ApiContext& context, const Hints& hints,
                                  const TenantLimits* limits, std::uint32_t generations) {
  const auto seconds = [](Duration duration) {
    return std::chrono::duration<double>(duration).count();
  };
  const ApiOptions& options = context.options;
  const bool has_deadline = hints.timeout.has_value() || options.request_timeout > Duration(0);
  if (!has_deadline && options.max_queue_wait == Duration(0)) return std::nullopt;
  const double wait = PredictedWait(context, hints.tenant, limits, generations);
  if (wait == 0) return std::nullopt;
  std::string why;
  Duration deadline = options.request_timeout;
  std::string name = "--request-timeout";
  if (hints.timeout && (deadline == Duration(0) || *hints.timeout < deadline)) {
    deadline = *hints.timeout;
    name = "the header `x-request-timeout`";
  }
  if (has_deadline && wait > seconds(deadline)) {
    why = name + " allows " + SecondsText(seconds(deadline));
  } else if (options.max_queue_wait > Duration(0) && wait > seconds(options.max_queue_wait)) {
    why = "--max-queue-wait allows " + SecondsText(seconds(options.max_queue_wait));
  } else {
    return std::nullopt;
  }
  return ApiError{
      ApiErrorKind::kOverloaded,
      "the request would wait about " + SecondsText(wait) + " before it starts, but " + why, ""};
}

}  // namespace

std::optional<ApiError> EnterTenant(ApiContext& context, const std::string& tenant,
                                    Permit& permit) {
  const auto keys = KeysOf(context);
  const TenantLimits* limits = keys == nullptr ? nullptr : keys->LimitsOf(tenant);
  if (limits == nullptr) return std::nullopt;
  auto error = context.gate.Enter(tenant, *limits, permit.count(), SteadyNow(), permit);
  if (error) context.metrics.tenants().Refused(tenant);
  return error;
}

std::optional<ApiError> Enter(ApiContext& context, const Hints& hints,
                              std::vector<GenerationRequest>& candidates, Permit& permit) {
  ApplyHints(hints, candidates);
  const auto keys = KeysOf(context);
  const TenantLimits* limits = keys == nullptr ? nullptr : keys->LimitsOf(hints.tenant);
  if (limits != nullptr && limits->max_priority && hints.priority > *limits->max_priority) {
    return ApiError{ApiErrorKind::kValidation,
                    "the header `x-penstock-priority` must be at most " +
                        std::to_string(*limits->max_priority) + " with the API key `" +
                        hints.tenant + "`. Given: " + std::to_string(hints.priority),
                    "x-penstock-priority"};
  }
  if (auto error =
          CheckCost(candidates, context.engine.Facts(), context.options.max_request_cost)) {
    return error;
  }
  if (auto error = CheckWait(context, hints, limits, permit.count())) return error;
  if (keys == nullptr || !keys->has_tenants()) return std::nullopt;
  for (GenerationRequest& candidate : candidates) {
    candidate.account = hints.tenant;
    candidate.weight = limits != nullptr ? limits->weight : 1;
    candidate.shares_prefixes = keys->shares_prefixes();
  }
  return EnterTenant(context, hints.tenant, permit);
}

}  // namespace penstock::router
