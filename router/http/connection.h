// One client connection: a coroutine that reads a request, lets the application answer it, writes
// the answer and starts again, until either side ends it.
//
// Threads: everything here belongs to the connection's io thread. Other threads reach it only
// through ExchangeState, which posts. The coroutine waits at a single place (Wait) for "something
// happened or the deadline passed": readiness, answers and control calls only set flags and wake
// it.
//
// The socket is watched for readability also while a request is being answered, so that a
// disconnect is noticed at once. A client that closes its sending side counts as disconnected.
// Bytes that arrive meanwhile are the next request. After HttpOptions::pipelined_bytes the watch
// pauses, and a disconnect is noticed by the next write.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "router/http/application.h"
#include "router/http/exchange_state.h"
#include "router/http/large_requests.h"
#include "router/http/options.h"
#include "router/http/request_reader.h"
#include "router/http/transport.h"
#include "router/http/wire.h"
#include "router/metrics/metrics.h"

namespace penstock::router {

// Bytes that all bodies together may take; see HttpOptions::body_memory. Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes) : left_(bytes) {}
  // Until the last copy is gone. Null: there is no room.
  std::shared_ptr<const void> Take(std::size_t bytes) {
    std::size_t left = left_.load();
    do {
      if (left < bytes) return nullptr;
    } while (!left_.compare_exchange_weak(left, left - bytes));
    return {this, [bytes](MemoryBudget* self) { self->left_.fetch_add(bytes); }};
  }

 private:
  std::atomic<std::size_t> left_;
};

// What all connections of a server share; outlives them.
struct ConnectionContext {
  const HttpOptions& options;
  const Application& application;
  Metrics& metrics;
  MemoryBudget& bodies;
  LargeRequests& large;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Executor = Transport::Executor;

  Connection(Transport transport, std::string peer, ConnectionContext context);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs until the connection is over, then calls `on_end`. Once.
  void Start(std::function<void()> on_end);

  // Ends the connection if it is idle, else after the answer in progress.
  void Drain();
  // Tells the application that time is up (kStopping) and ends shortly after.
  void Abort();

 private:
  template <class T>
  using Awaitable = boost::asio::awaitable<T, Executor>;
  // What is known of the request being served, for the answer's frame, metrics and log.
  struct Present {
    RequestHead head;
    RouteMatch match;
    bool keep_alive = false;
    int status = 0;
    std::size_t sent = 0;
    RequestEnd end;
    std::shared_ptr<const void> memory;  // reserved for the body
  };

  Awaitable<void> Run();
  Awaitable<bool> ServeOne();
  Awaitable<bool> ReadHead();
  Awaitable<bool> ReadBody(Present& present);
  Awaitable<bool> ReadBodyBytes(Present& present);
  Awaitable<bool> Answer(Present& present);
  Awaitable<bool> AnswerSteps(Present& present, ExchangeState& exchange);
  Awaitable<bool> WaitForAnswer(ExchangeState& exchange, Time last_sent, Time& cut_at);
  Awaitable<bool> Send(Present& present, const HttpResponse& response);
  Awaitable<bool> RefuseAndClose(Present& present, const HttpFailure& failure);
  Awaitable<bool> Write(std::string_view data);
  Awaitable<bool> EndSending();
  Awaitable<void> Linger();

  // False once `deadline` has passed. May return early without a reason.
  Awaitable<bool> Wait(Time deadline);
  void Wake();
  void ArmTimer(Time deadline);
  void WatchReadable(std::size_t room);
  void ReadAvailable();
  void WatchWritable();

  std::string FrameEvents(const Present& present, ExchangeState::Output& output,
                          bool& streaming) const;
  void FinishRequest(Present& present, bool delivered);

  ConnectionContext context_;
  Transport transport_;
  Transport::Timer event_;  // never expires: cancelling it is the wake-up
  Transport::Timer timer_;
  Time armed_ = Time::max();  // when timer_ fires; max: not armed
  std::string peer_;
  RequestReader reader_;
  std::string in_;                           // received, not yet taken by the reader
  std::shared_ptr<ExchangeState> exchange_;  // of the request being answered
  bool signalled_ = false;
  bool reading_ = false;      // a readability wait is pending
  bool writing_ = false;      // a writability wait is pending
  bool read_closed_ = false;  // the client sends no more, or the socket failed
  bool too_slow_ = false;
  bool cut_ = false;  // an answer was not delivered whole: an orderly end would hide it
  bool sending_ended_ = false;
  bool draining_ = false;
  bool aborting_ = false;
  Time answer_deadline_ = Time::max();  // of the answer in progress
  Time abort_at_ = Time::max();         // no write goes on after it
  std::uint64_t received_ = 0;
};

}  // namespace penstock::router
