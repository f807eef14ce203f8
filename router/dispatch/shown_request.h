// A request as a simulated shard may see it: JSON of what TGI's protocol carries beside the token
// ids (text, stop strings, truncation, grammar). A simulated shard answers by rules over these. A
// shard with a model never gets it.
#pragma once

#include <cstdint>
#include <string>

#include "router/engine.h"

namespace penstock::router {

// `max_new_tokens` and `max_input_tokens`: after the limits were applied.
std::string ShownRequest(const GenerationRequest& request, const GrammarSpec& grammar,
                         std::uint32_t max_new_tokens, std::uint32_t max_input_tokens);

}  // namespace penstock::router
