// Directives in the text of a request that change the output of an echo. The rules are those of
// TGI's recorded stand-in shard. <<<TEXT>>> outputs TEXT. [[dump]] outputs the parameters that
// reached the shard, as JSON. [[loop]] never ends. [[fail:K]] fails at the K-th token. [[slow:MS]]
// makes its steps slow.
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

// Decodes the request that the router put into the trace id. Without it there are no
// directives. Texts that cannot be encoded give no output.
EchoScript ReadEchoScript(const SequenceStart& start, const text::Tokenizer& tokenizer);

}  // namespace penstock::simshard
