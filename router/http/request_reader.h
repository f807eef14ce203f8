// Turns the bytes of a connection into requests, one after the other: framing check, Beast's
// parser, limits. It has no socket: its user appends bytes and asks again.
//
//   while (reader.ReadHead(in) == kNeedMore) append(in);
//   … decide …
//   while (reader.ReadBody(in) == kNeedMore) append(in);
//   use(reader.TakeBody()); reader.Reset();
//
// Bytes after the request stay in `in`: they begin the next request (pipelining).
// One owner; not synchronised.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "router/http/message.h"
#include "router/http/options.h"

namespace penstock::router {

class RequestReader {
 public:
  enum class State : std::uint8_t { kNeedMore, kReady, kFailed };

  explicit RequestReader(const HttpLimits& limits);
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Forgets the present request.
  void Reset();

  // Takes the head off the front of `in` once it is complete.
  State ReadHead(std::string& in);
  // After ReadHead gave kReady: method, path, query, headers and version.
  RequestHead& head();
  bool keep_alive() const;
  bool expects_continue() const;
  // The value of Content-Length; nothing for a chunked body.
  std::optional<std::uint64_t> content_length() const;
  bool has_body() const;

  // Returns false and sets the failure if Content-Length is above the limit. Not part of ReadHead,
  // so that a route and a key can be refused first.
  bool BodyFits();
  // Takes body bytes off the front of `in`. Without a body: kReady at once.
  State ReadBody(std::string& in);
  std::string TakeBody();
  std::size_t body_received() const;

  // The cause of kFailed, after which the connection cannot be reused. Status 0: no failure.
  const HttpFailure& failure() const;
  // A failure that the reader cannot see, such as a deadline.
  State Fail(HttpFailure failure);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::router
