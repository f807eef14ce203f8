// The dialect of DJL-Serving's LMI containers.
#pragma once

#include <memory>
#include <string_view>

#include "router/api/context.h"
#include "router/api/dialect.h"
#include "router/api/djl/options.h"

namespace penstock::router::djl {

std::unique_ptr<const Dialect> MakeDialect(const DjlOptions& options);

// DJL has two forms: {"code", "type", "message"} of its front end, and {"code", "error"} of its
// Python side. An error of a generation also has the keys of an answer without a text.
const ErrorFormat& Errors();

// A generation whose body is DJL's, on any route; `route` is its name in metrics.
void Serve(ApiContext& context, const DjlOptions& options, std::string_view route,
           const HttpRequest& request, std::shared_ptr<Exchange> exchange);

// A client may name the model by its whole name or by the last part: `model` of /opt/ml/model.
bool IsServed(const ModelFacts& facts, std::string_view name);
ApiError ModelNotFound(std::string_view name);

// POST /predictions/{model}[/{version}] and POST /models/{model}/invoke.
void Predictions(ApiContext& context, const DjlOptions& options, const HttpRequest& request,
                 std::shared_ptr<Exchange> exchange);
void InvokeModel(ApiContext& context, const DjlOptions& options, const HttpRequest& request,
                 std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::djl
