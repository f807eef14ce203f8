#include "router/http/tls_handshakes.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "common/log.h"
#include "common/thread_name.h"
#include "common/thread_priority.h"
#include "router/http/event_loop.h"

namespace penstock::router {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr Duration kSilence = std::chrono::seconds(1);
constexpr unsigned char kHandshakeRecord = 22;
constexpr std::string_view kSpeakTls =
    "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n"
    "content-length: 44\r\n\r\nthis port speaks HTTPS: begin with https://\n";

// Returns false if the client has closed its side or the connection is broken.
bool DropReceived(int socket) {
  static thread_local std::array<char, std::size_t{64} << 10> scratch;
  const auto got = ::recv(socket, scratch.data(), scratch.size(), MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

}  // namespace

class TlsHandshakes::Handshake : public std::enable_shared_from_this<Handshake> {
 public:
  Handshake(TlsHandshakes& owner, Transport::Socket socket, std::string peer, Done done)
      : owner_(owner),
        socket_(std::move(socket)),
        timer_(socket_.get_executor()),
        peer_(std::move(peer)),
        done_(std::move(done)),
        context_(owner.options_.tls->Get()) {}

  void Start(Open::iterator place) {
    place_ = place;
    error_code ignored;
    socket_.non_blocking(true, ignored);
    session_ = std::make_unique<TlsSession>(*context_, socket_.native_handle());
    Limit(owner_.options_.handshake_timeout, "it took too long");
    Wait(Transport::Socket::wait_read);
  }

  // Closes at once. `reason`: empty when there is nothing to log.
  void Fail(const std::string& reason) {
    if (!reason.empty()) owner_.Failed(peer_, reason);
    error_code ignored;
    socket_.close(ignored);
    session_.reset();
    End();
  }

 private:
  void Limit(Duration longest, std::string reason) {
    timer_.expires_after(longest);
    timer_.async_wait([self = shared_from_this(), reason = std::move(reason)](error_code ec) {
      if (!ec && self->done_) self->Fail(reason);
    });
  }

  // For a client that was sent a reason. In TLS 1.3 it may send its request before its certificate
  // is checked. Closing while it sends would reset the connection, and the reason would be lost.
  // The handshake counts as open meanwhile.
  void FailGently(const std::string& reason) {
    owner_.Failed(peer_, reason);
    error_code ignored;
    socket_.shutdown(Transport::Socket::shutdown_send, ignored);
    lingers_ = true;
    Limit(owner_.options_.linger, "");
    Go();
  }

  void Wait(Transport::Socket::wait_type readiness) {
    socket_.async_wait(readiness, [self = shared_from_this()](error_code ec) {
      if (!self->done_) return;
      if (ec) return self->Fail(ec.message());
      self->Go();
    });
  }

  void Go() {
    if (lingers_) {
      return DropReceived(socket_.native_handle()) ? Wait(Transport::Socket::wait_read) : Fail("");
    }
    if (!greeted_ && !Greet()) return;
    switch (session_->Handshake()) {
      case TlsSession::Step::kDone:
        return End();
      case TlsSession::Step::kWantRead:
        return Wait(Transport::Socket::wait_read);
      case TlsSession::Step::kWantWrite:
        return Wait(Transport::Socket::wait_write);
      case TlsSession::Step::kFailed:
        return FailGently(session_->failure());
    }
  }

  // Looks at the first byte. False: this client does not begin with TLS.
  bool Greet() {
    greeted_ = true;
    unsigned char first = 0;
    const auto got = ::recv(socket_.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
    // Load balancers connect to check the port and send nothing.
    if (got <= 0) Fail("");
    if (got <= 0) return false;
    if (first == kHandshakeRecord) return true;
    if (first >= 'A' && first <= 'Z') {
      ::send(socket_.native_handle(), kSpeakTls.data(), kSpeakTls.size(),
             MSG_NOSIGNAL | MSG_DONTWAIT);
      FailGently("it speaks plain HTTP, answered with 400");
    } else {
      Fail("it does not speak TLS");
    }
    return false;
  }

  void End() {
    timer_.cancel();
    const auto self = shared_from_this();
    const Done done = std::exchange(done_, nullptr);
    owner_.open_.erase(place_);
    done(std::move(socket_), std::move(session_));
  }

  TlsHandshakes& owner_;
  Transport::Socket socket_;
  Transport::Timer timer_;
  const std::string peer_;
  Done done_;  // null: it is over
  const std::shared_ptr<const TlsContext> context_;
  std::unique_ptr<TlsSession> session_;
  Open::iterator place_;
  bool greeted_ = false;
  bool lingers_ = false;
};

TlsHandshakes::TlsHandshakes(const HttpOptions& options, Metrics& metrics)
    : options_(options),
      metrics_(metrics),
      work_(context_.get_executor()),
      say_(context_.get_executor()) {}

TlsHandshakes::~TlsHandshakes() { Join(); }

void TlsHandshakes::Start() {
  thread_ = std::thread([this] {
    NameThread("tls");
    UseBackgroundPriority();
    RunLoop(context_);
  });
}

void TlsHandshakes::Begin(Transport::Socket socket, std::string peer, Done done) {
  auto handshake =
      std::make_shared<Handshake>(*this, std::move(socket), std::move(peer), std::move(done));
  asio::post(context_, [this, handshake = std::move(handshake)] {
    if (!aborted_ && open_.size() >= options_.max_handshakes) {
      open_.front()->Fail("too many handshakes at once");
    }
    open_.push_back(handshake);
    handshake->Start(std::prev(open_.end()));
    if (aborted_) handshake->Fail("");
  });
}

void TlsHandshakes::Abort() {
  asio::post(context_, [this] {
    aborted_ = true;
    while (!open_.empty()) {
      const auto first = open_.front();
      first->Fail("");
    }
  });
}

void TlsHandshakes::Join() {
  if (!thread_.joinable()) return;
  work_.reset();
  context_.stop();
  thread_.join();
  open_.clear();
  SayUnsaid();
}

void TlsHandshakes::Failed(const std::string& peer, const std::string& reason) {
  metrics_.http().TlsHandshakeFailed();
  if (silent_) {
    ++unsaid_;
    last_unsaid_ = peer + ": " + reason;
    return;
  }
  log::Warn("TLS handshake with " + peer + " failed: " + reason);
  silent_ = true;
  say_.expires_after(kSilence);
  say_.async_wait([this](error_code cancelled) {
    silent_ = false;
    if (!cancelled) SayUnsaid();
  });
}

void TlsHandshakes::SayUnsaid() {
  if (unsaid_ == 0) return;
  log::Warn(std::to_string(unsaid_) +
            (unsaid_ == 1 ? " more TLS handshake" : " more TLS handshakes") +
            " failed, the last with " + last_unsaid_);
  unsaid_ = 0;
}

}  // namespace penstock::router
