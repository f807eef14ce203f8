// The tables of all formats. Each file has a namespace of its own, so that its parts have short
// names.
#pragma once

#include "router/answer/format.h"

namespace penstock::router::answer {

namespace deepseek {
extern const Format kDeepSeekV3, kDeepSeekV31, kDeepSeekV32;
}
namespace gemma {
extern const Format kGemma4, kFunctionGemma;
}
namespace glm {
extern const Format kGlm45, kGlm4;
}
namespace gpt_oss {
extern const Format kGptOss;
}
namespace hermes {
extern const Format kHermes;
}
namespace json_list {
extern const Format kGranite, kPhi4;
}
namespace kimi {
extern const Format kKimi;
}
namespace llama3 {
extern const Format kLlama3;
}
namespace minimax {
extern const Format kMiniMaxM1, kMiniMaxM2;
}
namespace mistral {
extern const Format kMistral, kMistralNamed;
}
namespace pythonic {
extern const Format kLlama4, kGemma3;
}
namespace qwen3_coder {
extern const Format kQwen3Coder, kSeedOss;
}
namespace think {
extern const Format kThink, kNone;
}

}  // namespace penstock::router::answer
