// An HTTP request and its answer as values: no socket, no parser, no model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/time.h"

namespace penstock::router {

struct Header {
  std::string name;  // requests: lower case; answers: as it goes out
  std::string value;
};

struct RequestHead {
  std::string method;
  std::string path;   // as sent, not decoded: "/generate"
  std::string query;  // behind the '?', without it
  std::vector<Header> headers;
  bool http10 = false;
  std::string request_id;  // the client's X-Request-Id when it is well-formed, else made
  std::string peer;        // address of the client, for logs
  std::string tenant;      // name of the client's API key; empty where none is asked for
  Time arrived;            // when the head was complete
  Time read;               // when the body was

  // The value of the first header of that (lower-case) name; empty when absent.
  std::string_view Find(std::string_view name) const {
    for (const Header& header : headers) {
      if (header.name == name) return header.value;
    }
    return {};
  }
};

struct HttpRequest {
  RequestHead head;
  std::string body;
};

// Why a request failed, for the access log and the metrics.
struct RequestFailure {
  std::string_view kind;  // of a closed set, of static storage: validation, cancelled, …
  std::string text;
};

// Content-Length, Date, Connection and X-Request-Id are added when it is written.
struct HttpResponse {
  int status = 200;
  std::string content_type;  // empty: no Content-Type header
  std::vector<Header> headers;
  std::string body;
  std::optional<RequestFailure> failure = {};  // of an error; not sent
  // For a stream: what is sent whenever it has been silent for long. Points to static storage.
  std::string_view filler = {};
};

// Why a request cannot be served before a dialect has seen it.
struct HttpFailure {
  int status = 0;
  std::string message;  // one line: field, value, limit
};

}  // namespace penstock::router
