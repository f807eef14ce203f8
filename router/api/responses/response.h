// The response object, in each state of its life.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "router/api/context.h"
#include "router/api/responses/request.h"
#include "router/engine.h"

namespace penstock::router::responses {

// What stays the same from the first event to the last.
struct ResponseFacts {
  std::string suffix;  // of its id and of those of its items
  std::string id;
  std::string model;
  std::int64_t created = 0;
  std::string echo;  // members of the object: what the request asked for
};

ResponseFacts MakeFacts(const ApiContext& context, const Request& request,
                        const std::string& request_id);

// Token counts of a response that has ended.
struct Usage {
  std::uint64_t input = 0;
  std::uint64_t cached = 0;
  std::uint64_t output = 0;
  std::uint64_t reasoning = 0;
};

struct ResponseState {
  std::string_view status = "in_progress";
  std::string output = "[]";        // the items
  std::optional<Usage> usage = {};  // absent until the end
  std::string error = "null";       // the object
  std::optional<std::int64_t> completed = {};
};

std::string ResponseText(const ResponseFacts& facts, const ResponseState& state);

// The id of the response that has an item with this id; empty if the id is of another form.
std::string ResponseOfItem(std::string_view item_id);

}  // namespace penstock::router::responses
