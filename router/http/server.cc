#include "router/http/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>

#include "common/bad_option.h"
#include "common/log.h"
#include "common/status.h"
#include "common/thread_name.h"
#include "router/http/connection.h"
#include "router/http/event_loop.h"
#include "router/http/tls_handshakes.h"

namespace penstock::router {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::string_view kTooManyConnections =
    "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n"
    "content-type: text/plain; charset=utf-8\r\ncontent-length: 20\r\n\r\ntoo many connections";
constexpr Duration kAcceptBackOff = std::chrono::milliseconds(100);  // out of descriptors
constexpr Duration kCut = std::chrono::seconds(3);                   // longest end after an abort
constexpr int kUserTimeoutMs = 30000;  // a peer that vanished is given up after that

struct IoThread {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::unordered_set<std::shared_ptr<Connection>> connections;  // owner: this thread
  std::thread thread;
};

// Failures of these are harmless: an option that the kernel does not know is not used.
void Tune(Transport::Socket& socket, const HttpOptions& options) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs,
               sizeof(kUserTimeoutMs));
  if (options.send_buffer > 0) {
    socket.set_option(asio::socket_base::send_buffer_size(options.send_buffer), ignored);
  }
}

}  // namespace

struct HttpServer::Impl {
  Impl(HttpOptions o, const Application& a, Metrics& m)
      : options(std::move(o)), application(a), metrics(m), bodies(options.body_memory) {
    if (options.tls) handshakes.emplace(options, metrics);
  }

  absl::StatusOr<std::uint16_t> Listen();
  absl::Status Open(const tcp::endpoint& endpoint);
  void Accept();
  void Accepted(error_code ec, Transport::Socket socket, IoThread& thread);
  void Serve(Transport::Socket socket, IoThread& thread);
  void Shake(Transport::Socket socket, std::string peer, IoThread& thread);
  void Connect(Transport transport, std::string peer, IoThread& thread);
  void Ended(const std::shared_ptr<Connection>& connection, IoThread& thread);
  void Closed();
  template <class Call>
  void ForAll(Call call);
  bool WaitForNone(Duration longest);

  const HttpOptions options;
  const Application& application;
  Metrics& metrics;
  MemoryBudget bodies;
  std::optional<LargeRequests> large;
  std::deque<IoThread> threads;
  std::optional<TlsHandshakes> handshakes;  // with options.tls
  std::optional<asio::basic_socket_acceptor<tcp, Transport::Executor>> acceptor;  // threads[0]
  std::optional<asio::steady_timer> back_off;                                     // threads[0]
  std::size_t next_thread = 0;                                                    // threads[0]

  std::mutex mutex;
  std::condition_variable none_left;
  std::uint32_t open = 0;  // connections, under the mutex
  bool stopping = false;   // under the mutex
};

HttpServer::HttpServer(HttpOptions options, const Application& application, Metrics& metrics)
    : impl_(std::make_unique<Impl>(std::move(options), application, metrics)) {}

HttpServer::~HttpServer() { Stop(Duration{0}); }

absl::StatusOr<std::uint16_t> HttpServer::Start() {
  Impl& impl = *impl_;
  impl.threads.resize(std::max(1U, impl.options.io_threads));
  auto port = impl.Listen();
  if (!port.ok()) {
    impl.acceptor.reset();
    impl.back_off.reset();
    impl.threads.clear();
    return port;
  }
  impl.large.emplace();
  if (impl.handshakes) impl.handshakes->Start();
  impl.Accept();
  for (IoThread& thread : impl.threads) {
    thread.thread = std::thread([&thread] {
      NameThread("io");
      RunLoop(thread.context);
    });
  }
  return port;
}

absl::StatusOr<std::uint16_t> HttpServer::Impl::Listen() {
  error_code ec;
  tcp::resolver resolver(threads[0].context);
  const auto found = resolver.resolve(options.host, std::to_string(options.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, ec);
  if (ec || found.empty()) {
    return BadOption("hostname", options.host, "an address of this machine (" + ec.message() + ")");
  }
  PENSTOCK_RETURN_IF_ERROR(Open(found.begin()->endpoint()));
  const auto bound = acceptor->local_endpoint(ec);
  if (ec) return absl::InternalError("cannot read the bound port: " + ec.message());
  return bound.port();
}

absl::Status HttpServer::Impl::Open(const tcp::endpoint& endpoint) {
  acceptor.emplace(threads[0].context);
  back_off.emplace(threads[0].context);
  error_code ec;
  acceptor->open(endpoint.protocol(), ec);
  if (!ec) acceptor->set_option(asio::socket_base::reuse_address(true), ec);
  if (!ec) acceptor->bind(endpoint, ec);
  if (!ec) acceptor->listen(asio::socket_base::max_listen_connections, ec);
  if (!ec) return absl::OkStatus();
  if (ec == asio::error::address_in_use || ec == asio::error::access_denied) {
    return BadOption("port", std::to_string(options.port),
                     "free to listen on at " + options.host + " (" + ec.message() + ")");
  }
  return BadOption("hostname", options.host, "an address of this machine (" + ec.message() + ")");
}

void HttpServer::Impl::Accept() {
  IoThread& thread = threads[next_thread++ % threads.size()];
  asio::io_context& owner = handshakes ? handshakes->context() : thread.context;
  acceptor->async_accept(owner, [this, &thread](error_code ec, Transport::Socket socket) {
    Accepted(ec, std::move(socket), thread);
  });
}

void HttpServer::Impl::Accepted(error_code ec, Transport::Socket socket, IoThread& thread) {
  if (!acceptor->is_open()) return;
  if (ec == asio::error::no_descriptors || ec == asio::error::no_buffer_space ||
      ec == asio::error::no_memory) {
    log::Warn("cannot accept a connection: " + ec.message());
    back_off->expires_after(kAcceptBackOff);
    back_off->async_wait([this](error_code cancelled) {
      if (!cancelled) Accept();
    });
    return;
  }
  if (!ec) Serve(std::move(socket), thread);
  Accept();
}

void HttpServer::Impl::Serve(Transport::Socket socket, IoThread& thread) {
  Tune(socket, options);
  {
    const std::lock_guard lock(mutex);
    if (stopping) return;
    if (open >= options.max_connections) {
      metrics.http().ConnectionRefused();
      // A client that waits for a handshake could not read these bytes.
      if (handshakes) return;
      ::send(socket.native_handle(), kTooManyConnections.data(), kTooManyConnections.size(),
             MSG_NOSIGNAL | MSG_DONTWAIT);
      return;
    }
    ++open;
  }
  metrics.http().ConnectionOpened();
  error_code ignored;
  std::string peer = socket.remote_endpoint(ignored).address().to_string();
  if (handshakes) return Shake(std::move(socket), std::move(peer), thread);
  Connect(Transport(std::move(socket)), std::move(peer), thread);
}

// The connection moves to its io thread after its handshake.
void HttpServer::Impl::Shake(Transport::Socket socket, std::string peer, IoThread& thread) {
  auto done = [this, &thread, peer](Transport::Socket shaken, std::unique_ptr<TlsSession> session) {
    if (!session) return Closed();
    error_code ec;
    const auto endpoint = shaken.local_endpoint(ec);
    Transport::Socket moved(thread.context);
    if (!ec) moved.assign(endpoint.protocol(), shaken.release(), ec);
    if (ec) return Closed();
    Connect(Transport(std::move(moved), std::move(session)), peer, thread);
  };
  handshakes->Begin(std::move(socket), std::move(peer), std::move(done));
}

void HttpServer::Impl::Connect(Transport transport, std::string peer, IoThread& thread) {
  auto connection = std::make_shared<Connection>(
      std::move(transport), std::move(peer),
      ConnectionContext{options, application, metrics, bodies, *large});
  asio::post(thread.context, [this, &thread, connection = std::move(connection)] {
    thread.connections.insert(connection);
    // Weak: the set is the owner, and what the coroutine keeps would otherwise keep itself alive.
    connection->Start([this, &thread, weak = std::weak_ptr(connection)] {
      if (const auto ended = weak.lock()) Ended(ended, thread);
    });
    const std::lock_guard lock(mutex);
    if (stopping) connection->Drain();
  });
}

void HttpServer::Impl::Ended(const std::shared_ptr<Connection>& connection, IoThread& thread) {
  thread.connections.erase(connection);
  Closed();
}

void HttpServer::Impl::Closed() {
  metrics.http().ConnectionClosed();
  const std::lock_guard lock(mutex);
  if (--open == 0) none_left.notify_all();
}

template <class Call>
void HttpServer::Impl::ForAll(Call call) {
  for (IoThread& thread : threads) {
    asio::post(thread.context, [&thread, call] {
      for (const auto& connection : thread.connections) call(*connection);
    });
  }
}

bool HttpServer::Impl::WaitForNone(Duration longest) {
  std::unique_lock lock(mutex);
  return none_left.wait_for(lock, longest, [this] { return open == 0; });
}

void HttpServer::Stop(Duration drain) {
  Impl& impl = *impl_;
  if (impl.threads.empty()) return;
  asio::post(impl.threads[0].context, [&impl] {
    error_code ignored;
    impl.acceptor->close(ignored);
    impl.back_off->cancel();
  });
  {
    const std::lock_guard lock(impl.mutex);
    impl.stopping = true;
  }
  if (impl.handshakes) impl.handshakes->Abort();
  impl.ForAll([](Connection& connection) { connection.Drain(); });
  if (!impl.WaitForNone(drain)) {
    impl.ForAll([](Connection& connection) { connection.Abort(); });
    if (!impl.WaitForNone(kCut)) log::Warn("some connections had to be cut");
  }
  if (impl.handshakes) impl.handshakes->Join();
  for (IoThread& thread : impl.threads) {
    thread.work.reset();
    thread.context.stop();
    thread.thread.join();
  }
  for (IoThread& thread : impl.threads) thread.connections.clear();
  impl.large.reset();
  impl.acceptor.reset();
  impl.back_off.reset();
  impl.threads.clear();
}

}  // namespace penstock::router
