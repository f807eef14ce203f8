#include "scheduler/kv/text_regime.h"

namespace penstock::scheduler {
namespace {

constexpr char kSeparator = '\0';  // in no tenant
constexpr char kAdapter = 'a';     // begins no regime

}  // namespace

std::uint32_t TextRegime::Of(const Work& work) const {
  const auto prompt = static_cast<std::uint32_t>(work.request.prompt.size());
  const auto generated = static_cast<std::uint32_t>(work.generated.size());
  switch (rule_) {
    case LengthRule::kNone:
      return 0;
    case LengthRule::kRecompute:
      // The first decode of contrastive search computes a token more.
      return prompt + generated + (work.Candidates() > 0 ? 1 : 0) > original_ ? 1 : 0;
    case LengthRule::kPromptLength:
      return prompt > original_ ? prompt : 0;
  }
  return 0;
}

std::string TextRegime::Root(const Work& work) const {
  const std::uint32_t regime = Of(work);
  std::string root = work.request.tenant;
  if (regime != 0) root += kSeparator + std::to_string(regime);
  const std::string& adapter = work.request.adapter_id;
  if (!adapter.empty()) root = root + kSeparator + kAdapter + adapter;
  return root;
}

std::uint32_t TextRegime::MostPositions(const Work& work) const {
  return recomputes() && Of(work) == 0 ? original_ : UINT32_MAX;
}

bool IsRootOf(std::string_view root, std::string_view tenant) {
  return root.substr(0, root.find(kSeparator)) == tenant;
}

}  // namespace penstock::scheduler
