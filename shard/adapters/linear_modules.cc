#include "shard/adapters/linear_modules.h"

#include <absl/status/status.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <variant>

namespace penstock::shard {
namespace {

constexpr std::string_view kEnd = ".weight";
constexpr std::string_view kHead = "lm_head";
constexpr std::string_view kWrappers[] = {"model", "language_model", "transformer", "gpt_neox"};

// The name without the parts that name wrappers.
std::string Simplified(std::string_view name) {
  std::string simple;
  for (const absl::string_view piece :
       absl::StrSplit(absl::string_view(name.data(), name.size()), '.')) {
    const std::string_view part(piece.data(), piece.size());
    if (std::find(std::begin(kWrappers), std::end(kWrappers), part) != std::end(kWrappers))
      continue;
    if (!simple.empty()) simple += '.';
    simple += part;
  }
  return simple;
}

// How each target of the plan is used.
struct Uses {
  std::vector<bool> linear;
  std::vector<bool> embedding;
  std::vector<bool> expert;
  WeightIndex head = kNoWeight;
};

Uses UsesOf(const Program& program, std::size_t targets) {
  Uses uses{std::vector<bool>(targets), std::vector<bool>(targets), std::vector<bool>(targets)};
  const auto mark = [](std::vector<bool>& list, WeightIndex index) {
    if (index != kNoWeight) list[static_cast<std::size_t>(index)] = true;
  };
  for (const std::vector<Op>* ops : {&program.body, &program.head}) {
    for (const Op& op : *ops) {
      if (const auto* linear = std::get_if<LinearOp>(&op)) mark(uses.linear, linear->weight);
      if (const auto* embed = std::get_if<EmbedOp>(&op)) mark(uses.embedding, embed->table);
      const auto* experts = std::get_if<ExpertsOp>(&op);
      if (experts == nullptr) continue;
      for (const Expert& expert : experts->experts) {
        mark(uses.expert, expert.gate_up);
        mark(uses.expert, expert.down);
      }
    }
  }
  for (const Op& op : program.head) {
    if (const auto* linear = std::get_if<LinearOp>(&op)) uses.head = linear->weight;
  }
  return uses;
}

}  // namespace

LinearModules::LinearModules(const Program& program, const WeightPlan& plan) {
  const Uses uses = UsesOf(program, plan.targets.size());
  for (std::size_t i = 0; i < plan.targets.size(); ++i) {
    const auto target = static_cast<WeightIndex>(i);
    const std::string_view other_use = uses.embedding[i] ? "an embedding"
                                       : uses.expert[i]  ? "of an expert"
                                       : !uses.linear[i] ? "no plain linear layer here"
                                                         : "";
    for (const WeightPart& part : plan.targets[i].parts) {
      if (plan.targets[i].vector || part.stored_shape.size() < 2) continue;
      std::string_view name = part.tensor;
      if (name.ends_with(kEnd)) name.remove_suffix(kEnd.size());
      Add(Simplified(name), target, part, other_use);
      // A head that shares the embedding's matrix is a module of its own.
      if (target == uses.head && uses.embedding[i]) Add(std::string(kHead), target, part, "");
    }
  }
}

void LinearModules::Add(const std::string& name, WeightIndex target, const WeightPart& part,
                        std::string_view other_use) {
  Module& module = modules_[name];
  const std::size_t last = part.stored_shape.size() - 1;
  module.rows = part.stored_shape[last - 1];  // as it is used, also where it is stored transposed
  module.columns = part.stored_shape[last];
  module.places.push_back({target, &part});
  if (module.other_use.empty()) module.other_use = other_use;
}

absl::StatusOr<const LinearModules::Module*> LinearModules::Find(const std::string& name) const {
  const auto found = modules_.find(Simplified(name));
  if (found == modules_.end()) {
    return absl::NotFoundError("the model has no linear module " + name);
  }
  if (found->second.other_use.empty()) return &found->second;
  return absl::UnimplementedError("module " + name + " cannot be adapted: it is " +
                                  std::string(found->second.other_use));
}

}  // namespace penstock::shard
