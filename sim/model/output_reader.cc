#include "sim/model/output_reader.h"

#include <tuple>

namespace penstock::sim {
namespace {

auto Fields(const Decision& decision) {
  return std::tie(decision.at, decision.request, decision.kind, decision.short_of, decision.needed,
                  decision.available, decision.behind, decision.group, decision.step);
}

std::string Text(const scheduler::PinChange& pin) {
  static const char* const names[] = {"kept", "used", "dropped"};
  return std::string(names[static_cast<int>(pin.kind)]) + " pin of request " +
         std::to_string(pin.made_by.value()) + " by " + std::to_string(pin.by.value()) +
         " in group " + std::to_string(pin.group.value()) + ", " + std::to_string(pin.tokens) +
         " tokens, " + std::to_string(pin.blocks) + " blocks";
}

template <class T>
std::string Of(const char* name, const std::optional<T>& id) {
  return id ? std::string(name) + std::to_string(id->value()) : "";
}

}  // namespace

std::string Text(const Decision& decision) {
  return "request " + std::to_string(decision.request.value()) + " " +
         std::string(DecisionName(decision.kind)) + ", " +
         std::string(BudgetName(decision.short_of)) + " " + std::to_string(decision.needed) +
         " of " + std::to_string(decision.available) + Of(", behind ", decision.behind) +
         Of(", group ", decision.group) + Of(", step ", decision.step) + ", at " +
         std::to_string(decision.at.time_since_epoch().count());
}

void OutputReader::Expect(const Decision& expected) {
  const Decision* const actual = NextDecision();
  if (actual == nullptr) throw Difference{"expects \"" + Text(expected) + "\", the core ends"};
  if (Fields(*actual) != Fields(expected)) {
    throw Difference{"expects \"" + Text(expected) + "\", the core says \"" + Text(*actual) + "\""};
  }
  ++decision_;
}

std::size_t OutputReader::TakePlan(GroupId group) {
  if (plan_ >= out_.plans.size() || plan_ >= out_.steps.size()) {
    throw Difference{"expects a plan of group " + std::to_string(group.value())};
  }
  ExpectEqual("the group of a plan", group.value(), out_.plans[plan_].group.value());
  return plan_++;
}

void OutputReader::Expect(const scheduler::PinChange& expected) {
  if (pin_ >= out_.pins.size()) throw Difference{"expects \"" + Text(expected) + "\""};
  const std::string actual = Text(out_.pins[pin_++]);
  if (actual == Text(expected)) return;
  throw Difference{"expects \"" + Text(expected) + "\", the core says \"" + actual + "\""};
}

void OutputReader::ExpectEnd() const {
  if (const Decision* next = NextDecision()) {
    throw Difference{"expects no further decision, the core says \"" + Text(*next) + "\""};
  }
  ExpectEqual("plans", plan_, out_.plans.size());
  ExpectEqual("changes of pinned prefixes", pin_, out_.pins.size());
}

void ThrowDifference(std::string_view what, std::string_view whose, std::uint64_t model,
                     std::uint64_t core) {
  throw Difference{std::string(what) + std::string(whose) + ": " + std::to_string(model) +
                   " by the model, " + std::to_string(core) + " by the core"};
}

}  // namespace penstock::sim
