// The dialects that a server speaks, chosen when it starts. Immutable.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/dialect.h"
#include "router/api/djl/options.h"
#include "router/api/responses/store.h"

namespace penstock::router {

// What an operator says about dialects. Defaults are those of the options table.
struct DialectOptions {
  bool tgi_only = false;  // --api-profile tgi: stands in for TGI's router
  DjlOptions djl;
  std::string batching = "continuous";  // shown by GET /stats
  responses::StoreLimits response_store;
  bool console = true;  // the page on `/`; never with tgi_only
};

class DialectSet {
 public:
  // A route of two dialects is served by the first of them. `fallback` is one of `dialects`: it
  // answers for paths that no dialect owns.
  DialectSet(std::vector<std::unique_ptr<const Dialect>> dialects, const Dialect& fallback);

  struct Served {
    const Route* route;
    const Dialect* dialect;
  };
  const std::vector<Served>& served() const { return served_; }

  const std::vector<std::unique_ptr<const Dialect>>& dialects() const { return dialects_; }
  const Dialect& fallback() const { return *fallback_; }
  const Dialect& OwnerOf(std::string_view path) const;

 private:
  std::vector<std::unique_ptr<const Dialect>> dialects_;
  const Dialect* fallback_;
  std::vector<Served> served_;
};

DialectSet MakeDialects(const DialectOptions& options);

}  // namespace penstock::router
