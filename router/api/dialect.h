// One HTTP interface: its routes, the form of its errors and where its requests carry the API key.
//
// Each dialect has a folder. dialect_set.cc chooses the dialects of a server when it starts;
// other code depends on no particular dialect. To add a dialect: write its folder, add its line
// to dialect_set.cc.
//
// Dialects are immutable after construction; their handlers are called from many threads at once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/cors.h"
#include "router/api/errors.h"
#include "router/api/route.h"

namespace penstock::router {

struct ApiOptions;

// How a dialect writes an error. Stateless; the instances live as long as the process.
class ErrorFormat {
 public:
  virtual ~ErrorFormat() = default;

  // The HTTP status of an error, and of its body the media type, the text and the name of its
  // schema in the OpenAPI document. An event stream carries the body alone.
  virtual int Status(ApiErrorKind kind) const = 0;
  virtual std::string_view ContentType(ApiErrorKind) const { return "application/json"; }
  virtual std::string Body(const ApiError& error) const = 0;
  virtual std::string_view Schema() const = 0;

  // The engine's error with the dialect's texts and names of fields.
  virtual ApiError FromEngine(const GenerationError& error, const ApiOptions&) const {
    return router::FromEngine(error);
  }

  // The refusal of a request for which there is no permit. `most` requests have one.
  virtual ApiError TooManyRequests(std::uint32_t most) const;

  // The whole answer: status, body and the headers that say when to retry.
  HttpResponse Response(const ApiError& error) const;
};

// 200 with a body of JSON.
HttpResponse JsonResponse(std::string body);

class Dialect {
 public:
  virtual ~Dialect() = default;

  const std::vector<Route>& routes() const { return routes_; }

  virtual const ErrorFormat& Errors() const = 0;

  // The API key that a request carries. nullopt if no header holds a key in this dialect's form.
  virtual std::optional<std::string_view> KeyIn(const RequestHead& head) const;
  // How to send the key, for the message to a request without a valid one.
  virtual std::string_view KeyAdvice() const;

  // Whether this dialect answers for a path that no route matches, and for a request to the path
  // that could not be read.
  virtual bool Owns(std::string_view) const { return false; }

  // Adds headers about the request to an answer of this dialect's routes, or to a refusal in its
  // format.
  virtual void Sign(const RequestHead&, HttpResponse&) const {}
  virtual bool Signs() const { return false; }

  // May change an error that arose outside a handler. It is called on the server's default dialect,
  // for the refusals of all dialects.
  virtual HttpResponse Reword(HttpResponse response) const { return response; }

  // Whether answers name the unknown keys of their request in a header. It is called on the
  // server's default dialect.
  virtual bool NamesIgnoredKeys() const { return true; }

  // What pages of other origins may do. It is called on the server's default dialect.
  virtual CorsRules Cors() const { return {}; }

  // --- The OpenAPI document

  // All formats in which its routes may refuse.
  virtual std::vector<const ErrorFormat*> DocumentedErrors() const { return {&Errors()}; }
  // Appends members of an object of JSON schemas.
  virtual void AppendSchemas(std::string&) const {}

 protected:
  explicit Dialect(std::vector<Route> routes) : routes_(std::move(routes)) {}

 private:
  const std::vector<Route> routes_;
};

}  // namespace penstock::router
