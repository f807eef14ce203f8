// Runs the handshakes of a TLS listener on one thread of low priority. Each costs up to a
// millisecond, which would delay the streams of an io thread.
//
// At most HttpOptions::max_handshakes are open. One more client closes the oldest handshake, so
// that silent clients do not block others. Each has until HttpOptions::handshake_timeout. A client
// that speaks plain HTTP gets an answer in plain HTTP. A refused client has HttpOptions::linger to
// read the alert or the answer.
//
// The first failure is logged at once; one second later, one line counts those that followed.
//
// Threads: everything here belongs to the handshake thread; Begin and Abort only post.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "router/http/options.h"
#include "router/http/transport.h"
#include "router/metrics/metrics.h"

namespace penstock::router {

class TlsHandshakes {
 public:
  // Called once for each Begin, on the handshake thread. Without a session the socket is closed.
  using Done = std::function<void(Transport::Socket, std::unique_ptr<TlsSession>)>;

  // `options.tls` must be set. Both must outlive the object.
  TlsHandshakes(const HttpOptions& options, Metrics& metrics);
  ~TlsHandshakes();
  TlsHandshakes(const TlsHandshakes&) = delete;
  TlsHandshakes& operator=(const TlsHandshakes&) = delete;

  void Start();
  // Sockets that Begin gets must belong to this context.
  boost::asio::io_context& context() { return context_; }
  void Begin(Transport::Socket socket, std::string peer, Done done);
  // Closes the open handshakes and all later ones.
  void Abort();
  // Call after Abort. No Done is called afterwards.
  void Join();

 private:
  class Handshake;
  using Open = std::list<std::shared_ptr<Handshake>>;

  void Failed(const std::string& peer, const std::string& reason);
  void SayUnsaid();

  const HttpOptions& options_;
  Metrics& metrics_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  Open open_;  // the oldest first
  bool aborted_ = false;
  Transport::Timer say_;      // ends the silence behind a line about a failure, ...
  bool silent_ = false;       // ... in which ...
  std::uint64_t unsaid_ = 0;  // ... further ones are counted
  std::string last_unsaid_;
  std::thread thread_;
};

}  // namespace penstock::router
