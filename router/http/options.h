// Settings and limits of the HTTP side. Defaults are those of the options table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/time.h"

namespace penstock::router {

struct AnswerRecord;  // access_log.h
class TlsKeeper;      // tls_context.h

struct HttpLimits {
  std::size_t request_line = std::size_t{8} << 10;  // bytes; over it: 414
  std::size_t head_bytes = std::size_t{16} << 10;   // request line and headers; over it: 431
  std::size_t head_fields = 100;                    // headers; over it: 431
  std::size_t body_bytes = std::size_t{16} << 20;   // --payload-limit; over it: 413
  std::size_t chunks = 16384;                       // chunks of one body; over it: 400
  std::size_t free_chunks = 1024;                   // after this many chunks, the average …
  std::size_t average_chunk = 64;                   // … must be at least this many bytes
  std::size_t chunk_extensions = 1024;              // bytes of chunk extensions of one body
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 3000;  // 0: a free one, see HttpServer::Start
  std::uint32_t io_threads = 2;
  std::uint32_t max_connections = 4096;  // a further one is answered 503 and closed
  HttpLimits limits;
  std::shared_ptr<TlsKeeper> tls;      // null: plain HTTP
  std::uint32_t max_handshakes = 512;  // of TLS, at once; with one more the oldest is closed

  std::size_t body_memory = std::size_t{1} << 30;  // all bodies being read or handled; over it: 503
  std::size_t stream_buffer = std::size_t{256} << 10;   // bytes a client may be behind on a stream
  std::size_t pipelined_bytes = std::size_t{64} << 10;  // read ahead while a request is answered
  int send_buffer = 0;                                  // SO_SNDBUF; 0: the kernel's choice

  Duration keep_alive = std::chrono::seconds(75);  // between requests of a connection
  Duration handshake_timeout = std::chrono::seconds(10);
  Duration head_timeout = std::chrono::seconds(10);    // first byte to the end of the head
  Duration body_timeout = std::chrono::seconds(30);    // plus one second per KiB received
  Duration write_stall = std::chrono::seconds(30);     // without one byte taken by the client
  Duration stream_comment = std::chrono::seconds(15);  // silence before the filler of a stream
  Duration total_timeout = std::chrono::seconds(600);  // of one answer; 0: none
  // Called by an io thread with each answered request; must not block for long. Null: none.
  std::function<void(const AnswerRecord&)> audit;
  Duration linger = std::chrono::seconds(2);  // discarding what a refused client still sends
};

}  // namespace penstock::router
