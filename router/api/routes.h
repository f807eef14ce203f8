// The route table: what exists, who may call it, in which dialect it answers.
//
// Access is part of the row and defaults to "needs the key": a route that is forgotten is closed,
// not open. The decision hangs on the matched row, never on the spelling of a path.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "router/api/context.h"
#include "router/api/errors.h"
#include "router/http/application.h"

namespace penstock::router {

enum class Access : std::uint8_t {
  kKey,     // the API key, where one is configured
  kPublic,  // probes, metrics and facts about the model
};

// The profiles (--api-profile) that have a route.
enum class Profiles : std::uint8_t { kAll, kPenstock, kTgi };

using Handler = void (*)(ApiContext& context, HttpRequest request,
                         std::shared_ptr<Exchange> exchange);

struct Route {
  std::string_view method;   // GET (serves HEAD too), POST or DELETE
  std::string_view pattern;  // exact, or a prefix when it ends in "/{id}"
  Dialect dialect = Dialect::kNative;
  Handler handler = nullptr;
  Access access = Access::kKey;
  bool quiet = false;  // no line in the access log when it goes well
  Profiles profiles = Profiles::kAll;
};

std::span<const Route> Routes();

bool IsServed(const Route& route, bool tgi_profile);

// Whether its requests need the shards: they are refused while draining.
bool Generates(const Route& route);

bool Matches(const Route& route, std::string_view path);

// What stands for {id} in `path`; empty when the pattern has none.
std::string_view PathId(const Route& route, std::string_view path);

}  // namespace penstock::router
