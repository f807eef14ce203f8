// Which texts may share K and V where RoPE depends on the length of the text (LengthRule).
//
// Texts up to the original length are one regime, and every text is in it if there is no rule. With
// longrope all longer texts are a second one. With dynamic RoPE the prompts of each greater length
// are one: K and V of their positions have the frequencies of that length. A sequence stays in the
// regime in which it starts, so with longrope it must start again when it passes the length.
//
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/plan/group.h"
#include "scheduler/order/waiting_request.h"

namespace penstock::scheduler {

class TextRegime {
 public:
  explicit TextRegime(const GroupCapacity& capacity)
      : rule_(capacity.length_rule), original_(capacity.original_length) {}

  bool recomputes() const { return rule_ == LengthRule::kRecompute; }

  // Names the tree of the prefix index that holds the text: the tenant's own, or one of a regime
  // or an adapter. K and V of one adapter are of no use to another.
  std::string Root(const Work& work) const;
  // The most positions with K and V of a sequence that starts now. UINT32_MAX: any.
  std::uint32_t MostPositions(const Work& work) const;

 private:
  // 0: texts up to the original length.
  std::uint32_t Of(const Work& work) const;

  LengthRule rule_;
  std::uint32_t original_;
};

// Whether the tree belongs to the tenant.
bool IsRootOf(std::string_view root, std::string_view tenant);

}  // namespace penstock::scheduler
