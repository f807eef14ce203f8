// OpenAI's responses: POST /v1/responses and the routes of stored ones. A response is a chat in
// another form: openai/ chooses tools and lowers it, and writes the errors.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/api/dialect.h"
#include "router/api/responses/store.h"

namespace penstock::router::responses {

std::unique_ptr<const Dialect> MakeDialect(const StoreLimits& limits);

// The handlers. All dialect state is in the store.
void Create(ApiContext& context, const std::shared_ptr<Store>& store, const HttpRequest& http,
            const std::shared_ptr<Exchange>& exchange);
void Retrieve(ApiContext& context, const std::shared_ptr<Store>& store, const HttpRequest& http,
              const std::shared_ptr<Exchange>& exchange);
void Delete(ApiContext& context, const std::shared_ptr<Store>& store, const HttpRequest& http,
            const std::shared_ptr<Exchange>& exchange);
void Cancel(ApiContext& context, const std::shared_ptr<Store>& store, const HttpRequest& http,
            const std::shared_ptr<Exchange>& exchange);
void InputItems(ApiContext& context, const std::shared_ptr<Store>& store, const HttpRequest& http,
                const std::shared_ptr<Exchange>& exchange);

}  // namespace penstock::router::responses
