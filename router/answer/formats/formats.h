// The tables of all formats.
#pragma once

#include "router/answer/format.h"

namespace penstock::router::answer {

extern const Format kDeepSeekV3, kDeepSeekV31, kDeepSeekV32, kFunctionGemma, kGemma3, kGemma4,
    kGlm4, kGlm45, kGptOss, kGranite, kHermes, kKimi, kLlama3, kLlama4, kMiniMaxM1, kMiniMaxM2,
    kMistral, kMistralNamed, kNone, kPhi4, kQwen3Coder, kSeedOss, kThink;

}  // namespace penstock::router::answer
