#include "sim/shrink.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace penstock::sim {
namespace {

constexpr std::uint32_t kMostTries = 2000;

class Shrinker {
 public:
  explicit Shrinker(const Scenario& scenario) : best_(scenario) {
    guarantee_ = GuaranteeOf(RunScenario(best_));
  }

  Shrunk Run() {
    // Removes large parts first, then smaller ones. Removing one may allow removing others.
    while (RemoveEvents() || ShortenEvents()) {
    }
    return {best_, RunScenario(best_, true), tries_};
  }

 private:
  bool Fails(const Scenario& scenario) {
    if (tries_ >= kMostTries) return false;
    ++tries_;
    return GuaranteeOf(RunScenario(scenario)) == guarantee_;
  }

  bool RemoveEvents() {
    bool smaller = false;
    std::size_t part = std::max<std::size_t>(1, best_.script.size() / 2);
    for (; part > 0; part /= 2) {
      for (std::size_t at = 0; at < best_.script.size();) {
        Scenario less = best_;
        const auto first = less.script.begin() + static_cast<std::ptrdiff_t>(at);
        const std::size_t count = std::min(part, less.script.size() - at);
        less.script.erase(first, first + static_cast<std::ptrdiff_t>(count));
        if (Fails(less)) {
          best_ = std::move(less);
          smaller = true;
        } else {
          at += part;
        }
      }
    }
    return smaller;
  }

  // Shortens prompts and outputs, and removes what clients do besides sending a request.
  bool ShortenEvents() {
    bool smaller = false;
    for (std::size_t i = 0; i < best_.script.size(); ++i) {
      if (!std::holds_alternative<ClientArrives>(best_.script[i].what)) continue;
      for (const int what : {0, 1, 2, 3}) {
        while (true) {
          Scenario less = best_;
          auto& client = std::get<ClientArrives>(less.script[i].what);
          if (!Simplify(client, what) || !Fails(less)) break;
          best_ = std::move(less);
          smaller = true;
        }
      }
    }
    return smaller;
  }

  // Returns false if there is nothing to simplify.
  static bool Simplify(ClientArrives& client, int what) {
    scheduler::Arrival& arrival = client.arrival;
    switch (what) {
      case 0:
        if (arrival.prompt.size() < 2) return false;
        arrival.prompt.resize(arrival.prompt.size() - (arrival.prompt.size() + 3) / 4);
        if (arrival.prompt.empty()) arrival.prompt.push_back(10);
        return true;
      case 1:
        if (arrival.max_new_tokens < 2) return false;
        arrival.max_new_tokens -= (arrival.max_new_tokens + 3) / 4;
        arrival.max_new_tokens = std::max(arrival.max_new_tokens, 1u);
        return true;
      case 2:
        return std::exchange(client.stop_string_at, 0) != 0;
      default:
        return std::exchange(client.gives_up_at, 0) != 0;
    }
  }

  Scenario best_;
  std::string guarantee_;
  std::uint32_t tries_ = 0;
};

}  // namespace

std::string GuaranteeOf(const RunReport& report) {
  if (report.passed()) return "";
  return report.findings[0].substr(0, report.findings[0].find(':'));
}

Shrunk Shrink(const Scenario& scenario) { return Shrinker(scenario).Run(); }

}  // namespace penstock::sim
