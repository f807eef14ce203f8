// <think>…</think>: reasoning, and no calls.
#include "router/answer/formats/formats.h"

namespace penstock::router::answer::think {
namespace {

constexpr std::string_view kShown[] = {"</think>"};
constexpr Texts kEvidence[] = {kShown};
constexpr ReasoningMarkers kReasoning[] = {{"<think>", "</think>"}};

}  // namespace

const Format kThink = {.name = "think",
                       .models = "others that reason between <think> and </think>",
                       .evidence = kEvidence,
                       .reasoning = kReasoning};

const Format kNone = {.name = "none", .models = "all is text"};

}  // namespace penstock::router::answer::think
