// The linear modules of a model by the names that PEFT uses, and where their matrices lie in the
// weights of a rank. The names are those of the checkpoint, but for the names of wrappers, such as
// "model." or "language_model.", that differ between a checkpoint and its class.
//
// Threading: immutable. Program and plan outlive it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shard/model/program.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

class LinearModules {
 public:
  // A matrix [rows, columns] of the whole model.
  struct Module {
    std::uint64_t rows = 0;
    std::uint64_t columns = 0;
    // Parts of targets of linear operations on this rank.
    struct Place {
      WeightIndex target;
      const WeightPart* part;
    };
    std::vector<Place> places;
    std::string_view other_use;  // why it cannot be adapted; empty: it can
  };

  LinearModules(const Program& program, const WeightPlan& plan);

  // NotFound or Unimplemented with the name.
  absl::StatusOr<const Module*> Find(const std::string& name) const;

 private:
  void Add(const std::string& name, WeightIndex target, const WeightPart& part,
           std::string_view other_use);

  std::map<std::string, Module, std::less<>> modules_;
};

}  // namespace penstock::shard
