#include "router/api/console/dialect.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "common/fnv.h"
#include "router/api/console/files.h"
#include "router/api/docs/shapes.h"

namespace penstock::router::console {
namespace {

constexpr std::string_view kIndex = "index.html";
constexpr std::string_view kFolder = "/console/";
// The page may load its own files and call its own server. A model's text cannot do more.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

std::string_view TypeOf(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

std::string TagOf(const File& file) {
  std::array<char, 16> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), Fnv1a(file.bytes), 16).ptr;
  return "\"" + std::string(digits.data(), end) + "\"";
}

// Names do not change with the version, so a browser asks each time whether its copy is good.
HttpResponse Answer(const RequestHead& head, const File& file) {
  HttpResponse response{200,
                        std::string(TypeOf(file.name)),
                        {{"cache-control", "no-cache"},
                         {"etag", TagOf(file)},
                         {"content-security-policy", std::string(kPolicy)},
                         {"referrer-policy", "no-referrer"},
                         {"x-content-type-options", "nosniff"}},
                        ""};
  if (file.name == kIndex) response.headers.push_back({"vary", "accept"});
  if (head.Find("if-none-match").find(TagOf(file)) != std::string_view::npos) {
    response.status = 304;
  } else {
    response.body = file.bytes;
  }
  return response;
}

const File* Find(std::string_view name) {
  const auto files = Files();
  const auto found = std::ranges::find(files, name, &File::name);
  return found == files.end() ? nullptr : &*found;
}

void Serve(ApiContext& context, const HttpRequest& request,
           const std::shared_ptr<Exchange>& exchange) {
  const std::string name = request.head.path.substr(kFolder.size());
  if (const File* file = Find(name)) return exchange->Respond(Answer(request.head, *file));
  exchange->Respond(context.dialects.fallback().Errors().Response(
      {ApiErrorKind::kNotFound, "no file " + name + " in " + std::string(kFolder), ""}));
}

std::vector<Route> Routes() {
  Route files = Public(Get("/console/{id}", Serve,
                           {.contents = {{{"text/javascript", "string"}, {"text/css", "string"}}},
                            .path = "/console/{file}"}));
  files.quiet = true;
  Route events = Get("/console/events", Events, {.contents = {{{kEvents, "ConsoleSteps"}}}});
  return {std::move(events), std::move(files)};
}

constexpr docs::Shape kShapes[] = {
    {"ConsolePart", "slot:integer rows:integer prompt:boolean"},
    {"ConsoleStep",
     "group:integer step:integer predicted_us:integer taken_us:integer parts:ConsolePart[] "
     "parts_left_out:integer"},
    {"ConsoleBlocks", "free:integer used:integer cached:integer retiring:integer"},
    {"ConsoleWait",
     "request?:integer client_id?:string reason:string waits_us:integer behind?:integer"},
    {"ConsoleSteps",
     "running:integer waiting:integer waiting_for:object blocks:ConsoleBlocks queue:ConsoleWait[] "
     "queue_left_out:integer last_hour_us:object steps:ConsoleStep[] "
     "steps_left_out:integer"},
};

class ConsoleDialect final : public Dialect {
 public:
  explicit ConsoleDialect(const Dialect& fallback) : Dialect(Routes()), fallback_(fallback) {}
  const ErrorFormat& Errors() const override { return fallback_.Errors(); }
  void AppendSchemas(std::string& out) const override { docs::AppendShapes(out, kShapes); }

 private:
  const Dialect& fallback_;
};

}  // namespace

std::unique_ptr<const Dialect> MakeDialect(const Dialect& fallback) {
  return std::make_unique<ConsoleDialect>(fallback);
}

void Page(ApiContext&, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  exchange->Respond(Answer(request.head, *Find(kIndex)));
}

}  // namespace penstock::router::console
