// The handlers of stored responses.
#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "router/api/openai/dialect.h"
#include "router/api/responses/dialect.h"
#include "router/api/responses/item.h"
#include "router/api/responses/lower.h"
#include "router/http/text.h"
#include "router/json/reader.h"
#include "router/json/writer.h"

namespace penstock::router::responses {
namespace {

constexpr std::string_view kBase = "/v1/responses/";
constexpr std::size_t kDefaultLimit = 20;
constexpr std::size_t kGreatestLimit = 100;

// The id in a path that ends with `end`.
std::string IdIn(const RequestHead& head, std::string_view end = "") {
  std::string_view id = head.path;
  id.remove_prefix(kBase.size());
  id.remove_suffix(end.size());
  return PercentDecoded(id);
}

void NotFound(const Store& store, Exchange& exchange, const std::string& id) {
  std::string message = "no stored response has the id `" + id + "`";
  if (!store.enabled()) message += ": this server stores none (--response-store-entries 0)";
  exchange.Respond(
      openai::Errors().Response({ApiErrorKind::kNotFound, std::move(message), "response_id"}));
}

// The value of a key of the query; empty if there is none.
std::string QueryValue(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) == key && equals < pair.size()) {
      return PercentDecoded(pair.substr(equals + 1));
    }
  }
  return "";
}

// Which of the items are asked for.
struct Page {
  std::size_t limit = kDefaultLimit;
  bool newest_first = true;
  std::string after;
};

std::variant<Page, ApiError> ReadPage(std::string_view query) {
  Page page;
  page.after = QueryValue(query, "after");
  if (const std::string order = QueryValue(query, "order"); !order.empty()) {
    if (order != "asc" && order != "desc") {
      return MustBe("order", "asc or desc", json::DescribeString(order));
    }
    page.newest_first = order == "desc";
  }
  const std::string limit = QueryValue(query, "limit");
  if (limit.empty()) return page;
  const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), page.limit);
  if (error != std::errc() || end != limit.data() + limit.size() || page.limit == 0 ||
      page.limit > kGreatestLimit) {
    return MustBe("limit", "from 1 to 100", json::DescribeString(limit));
  }
  return page;
}

std::string ListText(std::vector<Item> items, const Page& page) {
  if (page.newest_first) std::ranges::reverse(items);
  if (!page.after.empty()) {
    const auto found = std::ranges::find(items, page.after, &Item::id);
    items.erase(items.begin(), found == items.end() ? found : found + 1);
  }
  const bool more = items.size() > page.limit;
  if (more) items.resize(page.limit);
  const std::string first = items.empty() ? "" : items.front().id;
  const std::string last = items.empty() ? "" : items.back().id;
  return json::ObjectText("object", "list", "data", json::Array(items, AppendItem), "first_id",
                          first, "last_id", last, "has_more", more);
}

}  // namespace

void Retrieve(ApiContext&, const std::shared_ptr<Store>& store, const HttpRequest& http,
              const std::shared_ptr<Exchange>& exchange) {
  if (QueryValue(http.head.query, "stream") == "true") {
    return exchange->Respond(
        openai::Errors().Response(Unsupported("stream", "of a stored response is not supported")));
  }
  const std::string id = IdIn(http.head);
  const StoredPtr stored = store->Find(http.head.tenant, id);
  if (stored == nullptr) return NotFound(*store, *exchange, id);
  exchange->Respond(JsonResponse(stored->object));
}

void Delete(ApiContext&, const std::shared_ptr<Store>& store, const HttpRequest& http,
            const std::shared_ptr<Exchange>& exchange) {
  const std::string id = IdIn(http.head);
  if (!store->Remove(http.head.tenant, id)) return NotFound(*store, *exchange, id);
  exchange->Respond(
      JsonResponse(json::ObjectText("id", id, "object", "response", "deleted", true)));
}

void Cancel(ApiContext&, const std::shared_ptr<Store>& store, const HttpRequest& http,
            const std::shared_ptr<Exchange>& exchange) {
  const std::string id = IdIn(http.head, "/cancel");
  StoredPtr stored = store->Find(http.head.tenant, id);
  if (stored == nullptr) return NotFound(*store, *exchange, id);
  if (stored->cancel != nullptr) {
    stored->cancel();
    if (StoredPtr now = store->Find(http.head.tenant, id)) stored = std::move(now);
  }
  exchange->Respond(JsonResponse(stored->object));
}

void InputItems(ApiContext&, const std::shared_ptr<Store>& store, const HttpRequest& http,
                const std::shared_ptr<Exchange>& exchange) {
  const std::string id = IdIn(http.head, "/input_items");
  const StoredPtr stored = store->Find(http.head.tenant, id);
  if (stored == nullptr) return NotFound(*store, *exchange, id);
  const auto page = ReadPage(http.head.query);
  if (const auto* error = std::get_if<ApiError>(&page)) {
    return exchange->Respond(openai::Errors().Response(*error));
  }
  exchange->Respond(JsonResponse(ListText(ReadStored(*stored->input), std::get<Page>(page))));
}

}  // namespace penstock::router::responses
