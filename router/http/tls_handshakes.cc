#include "router/http/tls_handshakes.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "common/log.h"
#include "common/thread_name.h"

namespace penstock::router {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kNice = 5;
constexpr Duration kSilence = std::chrono::seconds(1);
constexpr unsigned char kHandshakeRecord = 22;
constexpr std::string_view kSpeakTls =
    "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n"
    "content-length: 44\r\n\r\nthis port speaks HTTPS: begin with https://\n";

// Closing with unread bytes would reset the connection and could take the answer away.
void DropReceived(int socket) {
  std::array<char, 4096> scratch;
  for (int pieces = 0; pieces < 16; ++pieces) {
    if (::recv(socket, scratch.data(), scratch.size(), MSG_DONTWAIT) <= 0) return;
  }
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
    session_ = std::make_unique<TlsSession>(*context_, socket_.native_handle());
    timer_.expires_after(owner_.options_.handshake_timeout);
    timer_.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled && self->done_) self->Fail("it took too long");
    });
    Wait(Transport::Socket::wait_read);
  }

  // `reason`: empty when there is nothing to log.
  void Fail(const std::string& reason) {
    if (!reason.empty()) owner_.Say(peer_, reason);
    error_code ignored;
    socket_.close(ignored);
    session_.reset();
    End();
  }

 private:
  void Wait(Transport::Socket::wait_type readiness) {
    socket_.async_wait(readiness, [self = shared_from_this()](error_code ec) {
      if (!self->done_) return;
      if (ec) return self->Fail(ec.message());
      self->Go();
    });
  }

  void Go() {
    if (!greeted_ && !Greet()) return;
    switch (session_->Handshake()) {
      case TlsSession::Step::kDone:
        return End();
      case TlsSession::Step::kWantRead:
        return Wait(Transport::Socket::wait_read);
      case TlsSession::Step::kWantWrite:
        return Wait(Transport::Socket::wait_write);
      case TlsSession::Step::kFailed:
        return Fail(session_->failure());
    }
  }

  // Looks at the first byte. False: this client does not begin with TLS.
  bool Greet() {
    greeted_ = true;
    unsigned char first = 0;
    const auto got = ::recv(socket_.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
    // Load balancers look whether somebody listens, and say nothing.
    if (got <= 0) Fail("");
    if (got <= 0) return false;
    if (first == kHandshakeRecord) return true;
    const bool is_http = first >= 'A' && first <= 'Z';
    if (is_http) {
      DropReceived(socket_.native_handle());
      ::send(socket_.native_handle(), kSpeakTls.data(), kSpeakTls.size(),
             MSG_NOSIGNAL | MSG_DONTWAIT);
      error_code ignored;
      socket_.shutdown(Transport::Socket::shutdown_send, ignored);
    }
    Fail(is_http ? "it speaks plain HTTP, answered with 400" : "it does not speak TLS");
    return false;
  }

  void End() {
    timer_.cancel();
    const auto self = shared_from_this();
    const Done done = std::exchange(done_, nullptr);
    owner_.open_.erase(place_);
    done(std::move(socket_), std::move(session_));
  }

  using Timer =
      asio::basic_waitable_timer<std::chrono::steady_clock,
                                 asio::wait_traits<std::chrono::steady_clock>, Transport::Executor>;
  TlsHandshakes& owner_;
  Transport::Socket socket_;
  Timer timer_;
  const std::string peer_;
  Done done_;  // null: it is over
  const std::shared_ptr<const TlsContext> context_;
  std::unique_ptr<TlsSession> session_;
  Open::iterator place_;
  bool greeted_ = false;
};

TlsHandshakes::TlsHandshakes(const HttpOptions& options)
    : options_(options), work_(context_.get_executor()) {}

TlsHandshakes::~TlsHandshakes() { Join(); }

void TlsHandshakes::Start() {
  thread_ = std::thread([this] {
    NameThread("tls");
    ::setpriority(PRIO_PROCESS, 0, kNice);  // of this thread; where it fails it is as the others
    while (!context_.stopped()) {
      try {
        context_.run();
      } catch (const std::exception& failure) {  // out of memory: its connection suffers
        log::Error("a handler of handshakes failed: " + std::string(failure.what()));
      }
    }
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
}

void TlsHandshakes::Say(const std::string& peer, const std::string& reason) {
  ++unsaid_;
  const Time now = SteadyNow();
  if (now < silent_until_) return;
  std::string line = "TLS handshake with " + peer + " failed: " + reason;
  if (unsaid_ > 1) line += " (and " + std::to_string(unsaid_ - 1) + " others before it)";
  log::Warn(line);
  unsaid_ = 0;
  silent_until_ = now + kSilence;
}

}  // namespace penstock::router
