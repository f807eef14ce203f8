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

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "router/http/message.h"
#include "router/http/options.h"

namespace penstock::router {

class RequestReader {
 public:
  enum class State : std::uint8_t { kNeedMore, kReady, kFailed };

  explicit RequestReader(const HttpLimits& limits) : limits_(limits) { Reset(); }
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Forgets the present request.
  void Reset();

  // Takes the head off the front of `in` once it is complete.
  State ReadHead(std::string& in);
  // After ReadHead gave kReady: method, path, query, headers and version.
  RequestHead& head() { return head_; }
  bool keep_alive() const { return parser_->keep_alive(); }
  bool expects_continue() const { return expects_continue_; }
  // The value of Content-Length; nothing for a chunked body.
  std::optional<std::uint64_t> content_length() const { return length_; }
  bool has_body() const { return !parser_->is_done(); }

  // Returns false and sets the failure if Content-Length is above the limit. Not part of ReadHead,
  // so that a route and a key can be refused first.
  bool BodyFits();
  // Takes body bytes off the front of `in`. Without a body: kReady at once.
  State ReadBody(std::string& in);
  std::string TakeBody() { return std::move(parser_->get().body()); }

  // The cause of kFailed, after which the connection cannot be reused. Status 0: no failure.
  const HttpFailure& failure() const { return failure_; }
  // A failure that the reader cannot see, such as a deadline.
  State Fail(HttpFailure failure);

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using ChunkCall = void(std::uint64_t size, boost::beast::string_view extensions,
                         boost::beast::error_code& ec);

  State ParseHead(std::string_view text);
  void CopyHead();
  void CheckChunk(std::uint64_t size, std::size_t extensions, boost::beast::error_code& ec);

  const HttpLimits limits_;
  std::optional<Parser> parser_;
  std::function<ChunkCall> on_chunk_;  // the parser refers to it
  std::uint64_t chunks_ = 0;
  std::uint64_t chunk_bytes_ = 0;
  std::uint64_t extension_bytes_ = 0;
  std::string_view chunk_fault_;  // why the chunks were refused
  RequestHead head_;
  HttpFailure failure_;
  bool expects_continue_ = false;
  std::optional<std::uint64_t> length_;
};

}  // namespace penstock::router
