#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "router/api/body.h"
#include "router/api/errors.h"
#include "router/api/keys.h"
#include "router/api/native/dialect.h"
#include "router/http/text.h"
#include "router/json/fields.h"
#include "router/json/writer.h"

namespace penstock::router::native {
namespace {

struct LoadRequest {
  std::string name;
  std::string folder;
};

constexpr auto kLoadRequest = std::array{
    json::MakeField<&LoadRequest::name>("name", "a string", true),
    json::MakeField<&LoadRequest::folder>("folder", "a string", true),
};

constexpr BodyRules kLoadRules = {.strict = true, .to_error = FromJsonInWords};

const ErrorFormat& ErrorsOf(const ApiContext& context) {
  return context.dialects.fallback().Errors();
}

// An adapter changes what other clients get, and its folder is one of the server's machine.
bool Allowed(ApiContext& context, const RequestHead& head, Exchange& exchange) {
  const bool keys = context.options.keys != nullptr && !context.options.keys->Get()->empty();
  if (!keys || context.options.IsAdmin(head.tenant)) return true;
  RefuseRequest(context, exchange, ErrorsOf(context),
                {ApiErrorKind::kUnauthorized,
                 "adapters are loaded and unloaded with the key of --admin-key-name", ""});
  return false;
}

ApiErrorKind KindOf(const absl::Status& status) {
  if (absl::IsNotFound(status)) return ApiErrorKind::kNotFound;
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    return ApiErrorKind::kUnavailable;
  }
  return absl::IsInternal(status) ? ApiErrorKind::kInternal : ApiErrorKind::kValidation;
}

void AppendAdapter(std::string& out, const AdapterInfo& adapter) {
  json::AppendObject(out, "name", adapter.name, "folder", adapter.folder, "rank", adapter.rank,
                     "bytes", adapter.bytes, "requests", adapter.requests, "state",
                     adapter.unloading ? "unloading" : "loaded");
}

std::string ListText(const std::vector<AdapterInfo>& adapters) {
  return json::ObjectText("adapters", json::Array(adapters, AppendAdapter));
}

}  // namespace

void Adapters(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  exchange->Respond(JsonResponse(ListText(context.engine.Adapters())));
}

void LoadAdapter(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  if (!Allowed(context, request.head, *exchange)) return;
  const auto parsed = Parse<LoadRequest>(request.body, kLoadRules, kLoadRequest, "an object");
  if (!Accept(context, "/adapters", "native", ErrorsOf(context), parsed, *exchange)) return;
  const LoadRequest& load = parsed.request;
  const auto refuse = [&](std::string_view field, std::string why) {
    RefuseRequest(context, *exchange, ErrorsOf(context),
                  {ApiErrorKind::kValidation, std::move(why), std::string(field)});
  };
  if (const auto name = CheckAdapterName(load.name); !name.ok()) {
    return refuse("name", "`name`: " + Message(name));
  }
  if (load.folder.empty()) return refuse("folder", "`folder` must not be empty");
  context.engine.LoadAdapter(
      {load.name, load.folder}, [&context, exchange, name = load.name](const absl::Status& status) {
        if (status.ok())
          return exchange->Respond(JsonResponse(ListText(context.engine.Adapters())));
        ApiErrorKind kind = KindOf(status);
        if (kind == ApiErrorKind::kNotFound) kind = ApiErrorKind::kValidation;  // of a file
        exchange->Respond(ErrorsOf(context).Response({kind, Message(status), "folder"}));
      });
}

void UnloadAdapter(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  if (!Allowed(context, request.head, *exchange)) return;
  constexpr std::string_view kPrefix = "/adapters/";
  const std::string name =
      PercentDecoded(std::string_view(request.head.path).substr(kPrefix.size()));
  context.engine.UnloadAdapter(name, [&context, exchange](const absl::Status& status) {
    if (status.ok()) return exchange->Respond(JsonResponse(ListText(context.engine.Adapters())));
    exchange->Respond(ErrorsOf(context).Response({KindOf(status), Message(status), "name"}));
  });
}

}  // namespace penstock::router::native
