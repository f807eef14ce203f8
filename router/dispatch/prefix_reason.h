// Why a prompt missed the prefix cache. Computed only when a client asks for it.
#pragma once

#include <cstdint>
#include <optional>

#include "router/dispatch/prompt_history.h"
#include "router/dispatch/request_records.h"
#include "router/engine.h"
#include "text/tokenizer.h"

namespace penstock::router {

struct PrefixSources {
  const PromptHistory& history;
  const RequestRecords& records;
  const text::Tokenizer& tokenizer;
  std::uint32_t block_size;
};

// nullopt: the request has not begun, its prompt is forgotten, or it read all that it could.
// `admin`: prompts of other tenants are compared, too.
std::optional<PrefixReason> ExplainPrefix(const PrefixSources& sources, const RequestRecord& record,
                                          bool admin);

}  // namespace penstock::router
