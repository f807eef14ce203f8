// What an echo says when the request brings directives in its text (rules of TGI's recorded
// stand-in shard): <<<TEXT>>> says TEXT, [[dump]] says what reached the shard as JSON, [[loop]]
// never ends, [[fail:K]] fails at the K-th token, [[slow:MS]] makes its steps slow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "text/tokenizer.h"

namespace penstock::simshard {

struct EchoScript {
  std::optional<std::vector<TokenId>> tokens;  // instead of the prompt's own
  bool endless = false;
  std::uint32_t fail_at = 0;  // 1-based; 0 = never
  std::uint32_t slow_ms = 0;
};

// Reads the request that the router shows in the start's trace id; without one there are no
// directives. Texts that cannot be encoded say nothing.
EchoScript ReadEchoScript(const SequenceStart& start, const text::Tokenizer& tokenizer);

}  // namespace penstock::simshard
