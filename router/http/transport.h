// The bytes of one connection, plain or through TLS. The socket's readiness is the readiness of
// both. Owner: the thread of the socket's executor.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "router/http/tls_session.h"

namespace penstock::router {

class Transport {
 public:
  using Executor = boost::asio::io_context::executor_type;
  using Timer = boost::asio::basic_waitable_timer<
      std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor>;
  using error_code = boost::system::error_code;

  // `tls`: null for a plain connection, else a session on this socket whose handshake is done.
  explicit Transport(Socket socket, std::unique_ptr<TlsSession> tls = nullptr)
      : socket_(std::move(socket)), tls_(std::move(tls)) {}

  Socket& socket() { return socket_; }
  bool encrypted() const { return tls_ != nullptr; }

  // Writes or reads as much as the kernel allows now. would_block: nothing was moved.
  std::size_t WriteSome(std::string_view data, error_code& ec) {
    if (tls_) return tls_->WriteSome(data, ec);
    return socket_.write_some(boost::asio::buffer(data.data(), data.size()), ec);
  }
  std::size_t ReadSome(std::span<char> room, error_code& ec) {
    if (tls_) return tls_->ReadSome(room, ec);
    return socket_.read_some(boost::asio::buffer(room.data(), room.size()), ec);
  }

  // Tells the client that nothing more will be sent. would_block: call again when writable.
  void EndSending(error_code& ec) {
    if (tls_) tls_->EndSending(ec);
    if (!tls_ || !ec) socket_.shutdown(Socket::shutdown_send, ec);
  }

 private:
  Socket socket_;
  std::unique_ptr<TlsSession> tls_;
};

}  // namespace penstock::router
