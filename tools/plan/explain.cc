#include "tools/plan/explain.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace penstock::plan {
namespace {

struct Variant {
  std::string text;  // "with half the bound of the time to first token (200 ms)"
  Goal goal;
};

using BoundOf = std::optional<Duration> sim::Objective::*;

std::vector<Variant> Variants(const Goal& goal) {
  constexpr std::pair<std::string_view, BoundOf> kBounds[] = {
      {"time to first token", &sim::Objective::ttft},
      {"mean time between tokens", &sim::Objective::inter_token},
      {"longest time between tokens", &sim::Objective::worst_gap},
  };
  constexpr std::pair<std::string_view, double> kFactors[] = {{"half", 0.5}, {"twice", 2}};
  std::vector<Variant> variants;
  for (const auto& [name, bound] : kBounds) {
    if (!(goal.slo.*bound)) continue;
    for (const auto& [word, factor] : kFactors) {
      Variant variant{"", goal};
      Duration& changed = *(variant.goal.slo.*bound);
      changed = Duration(static_cast<Duration::rep>(static_cast<double>(changed.count()) * factor));
      variant.text = absl::StrFormat("with %s the bound of the %s (%g ms)", std::string(word),
                                     std::string(name), Milliseconds(changed));
      variants.push_back(std::move(variant));
    }
  }
  return variants;
}

// The plans under another goal, those that cannot meet it left out.
std::vector<Plan> Again(const std::vector<Plan>& plans, const Load& load, const Goal& goal,
                        unsigned threads) {
  const Evaluator evaluator(load, goal);
  const std::size_t requests = std::max<std::size_t>(load.trace.requests.size() / 2, 1);
  std::vector<Plan> again = plans;
  ForEach(again.size(), threads, [&](std::size_t i) {
    Plan& plan = again[i];
    if (goal.demand) {
      plan.setting.groups = plan.setting.type->MostGroups();
      plan.setting.groups = evaluator.FewestGroups(plan.setting, requests);
      plan.goodput = plan.setting.groups == 0 ? 0 : plan.goodput;
    } else {
      plan.goodput = evaluator.Goodput(plan.setting, requests, 0.05);
      plan.rate = plan.goodput;
    }
  });
  std::erase_if(again, [](const Plan& plan) { return plan.goodput <= 0; });
  std::stable_sort(again.begin(), again.end(),
                   [&](const Plan& a, const Plan& b) { return Better(goal, a, b); });
  return again;
}

bool SameChoice(const Setting& a, const Setting& b) {
  return a.type == b.type && a.groups == b.groups && a.step_tokens == b.step_tokens &&
         a.order == b.order && a.admission == b.admission;
}

void AddObjectives(const std::vector<Plan>& plans, const Load& load, const Goal& goal,
                   unsigned threads, std::vector<std::string>& lines) {
  bool stays = false;
  for (const Variant& variant : Variants(goal)) {
    const std::vector<Plan> again = Again(plans, load, variant.goal, threads);
    if (again.empty()) {
      lines.push_back(variant.text + ", none of the best plans meets the objective");
    } else if (!SameChoice(again.front().setting, plans.front().setting)) {
      lines.push_back(variant.text + ": " + again.front().setting.Text());
    } else {
      stays = true;
    }
  }
  if (stays) lines.emplace_back("the choice stays with half or twice each other bound");
}

// The price (watts) of a rank of `other` below which it costs no more than `choice`.
double BreakEven(const Goal& goal, const Plan& choice, const Plan& other) {
  const double whole = goal.aim == Aim::kCost ? choice.setting.Price() : choice.setting.Watts();
  const double rates = goal.demand ? 1 : other.rate / choice.rate;
  return whole * rates / other.setting.Ranks();
}

void AddBreakEven(const std::vector<Plan>& plans, const Goal& goal,
                  std::vector<std::string>& lines) {
  const Plan& choice = plans.front();
  const auto other = std::ranges::find_if(plans, [&](const Plan& plan) {
    return plan.setting.type->machine != choice.setting.type->machine;
  });
  if (other == plans.end()) return;
  lines.push_back(absl::StrFormat("%s below %.4g for a rank: %s",
                                  other->setting.type->machine->name +
                                      (goal.aim == Aim::kCost ? ", at a price" : ", with watts"),
                                  BreakEven(goal, choice, *other), other->setting.Text()));
}

}  // namespace

std::vector<std::string> WhatWouldChange(const std::vector<Plan>& plans, const Load& load,
                                         const Goal& goal, unsigned threads) {
  std::vector<std::string> lines;
  const Plan& choice = plans.front();
  if (goal.demand) {
    lines.push_back(absl::StrFormat("a rate above %.3g requests/s: more groups, or another plan",
                                    choice.goodput));
  }
  if (goal.aim == Aim::kThroughput && plans.size() > 1) {
    lines.push_back(
        absl::StrFormat("the runner-up serves %.1f %% less: an error of the step times "
                        "of that size would change the order",
                        100 * (1 - plans[1].goodput / choice.goodput)));
  }
  if (goal.aim != Aim::kThroughput) AddBreakEven(plans, goal, lines);
  AddObjectives(plans, load, goal, threads, lines);
  return lines;
}

}  // namespace penstock::plan
