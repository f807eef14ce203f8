// All dialects as one HTTP application: finds the route, checks the key, and answers what never
// reaches a handler, in the dialect of the route. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "router/api/context.h"
#include "router/http/application.h"

namespace penstock::router {

class Api final : public Application {
 public:
  // `context` must outlive it.
  explicit Api(ApiContext& context) : context_(context) {}

  RouteMatch Match(const RequestHead& head) const override;
  HttpResponse Refuse(const RequestHead& head, const HttpFailure& failure) const override;

 private:
  RouteMatch MatchPlain(const RequestHead& head) const;
  // The name of the client's key; empty if the server has no keys. nullopt: the key is missing or
  // wrong.
  std::optional<std::string> TenantOf(const RequestHead& head, const Dialect& dialect) const;
  std::vector<Header> Cors(const RequestHead& head) const;

  ApiContext& context_;
};

}  // namespace penstock::router
