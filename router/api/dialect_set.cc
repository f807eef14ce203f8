#include "router/api/dialect_set.h"

#include <algorithm>
#include <utility>

#include "router/api/anthropic/dialect.h"
#include "router/api/console/dialect.h"
#include "router/api/djl/dialect.h"
#include "router/api/effective/dialect.h"
#include "router/api/native/dialect.h"
#include "router/api/ollama/dialect.h"
#include "router/api/openai/dialect.h"
#include "router/api/responses/dialect.h"
#include "router/api/sagemaker/dialect.h"
#include "router/api/sglang/dialect.h"
#include "router/api/tgi/dialect.h"
#include "router/api/vectors/dialect.h"

namespace penstock::router {

DialectSet::DialectSet(std::vector<std::unique_ptr<const Dialect>> dialects,
                       const Dialect& fallback)
    : dialects_(std::move(dialects)), fallback_(&fallback) {
  for (const auto& dialect : dialects_) {
    for (const Route& route : dialect->routes()) {
      const bool taken = std::ranges::any_of(served_, [&route](const Served& other) {
        return other.route->method == route.method && other.route->pattern == route.pattern;
      });
      if (!taken) served_.push_back({&route, dialect.get()});
    }
  }
}

const Dialect& DialectSet::OwnerOf(std::string_view path) const {
  for (const auto& dialect : dialects_) {
    if (dialect->Owns(path)) return *dialect;
  }
  return *fallback_;
}

// One line registers a dialect. Native and SageMaker routes refuse in the form of the fallback, so
// that a client has one form to read.
DialectSet MakeDialects(const DialectOptions& options) {
  std::vector<std::unique_ptr<const Dialect>> dialects;
  dialects.push_back(options.tgi_only ? tgi::MakeStandInDialect()
                                      : tgi::MakeDialect(options.console));
  dialects.push_back(djl::MakeDialect(options.djl));
  const bool djl_first = options.djl.is_default && !options.tgi_only;
  const Dialect& fallback = *dialects[djl_first ? 1 : 0];
  if (!options.tgi_only) {
    dialects.push_back(sagemaker::MakeDialect(options.djl, fallback));
    dialects.push_back(anthropic::MakeDialect());
    dialects.push_back(vectors::MakeDialect());
    dialects.push_back(openai::MakeDialect());
    dialects.push_back(ollama::MakeDialect());
    dialects.push_back(sglang::MakeDialect());
    dialects.push_back(responses::MakeDialect(options.response_store));
  }
  dialects.push_back(effective::MakeDialect(options.batching));
  dialects.push_back(native::MakeDialect(fallback));
  if (options.console && !options.tgi_only) dialects.push_back(console::MakeDialect(fallback));
  return DialectSet(std::move(dialects), fallback);
}

}  // namespace penstock::router
