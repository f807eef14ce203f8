#include "router/http/exchange_state.h"

#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "router/http/wire.h"

namespace penstock::router {
namespace {

bool IsDead(const std::optional<CloseReason>& closed) {
  return closed == CloseReason::kClientGone || closed == CloseReason::kTooSlow;
}

}  // namespace

std::shared_ptr<Exchange> MakeExchange(std::shared_ptr<ExchangeState> state) {
  Exchange* const exchange = state.get();
  return {exchange, [state = std::move(state)](Exchange*) { state->Abandon(); }};
}

ExchangeState::ExchangeState(std::size_t max_behind, std::function<void()> wake)
    : max_unsent_(max_behind), wake_(std::move(wake)) {}

void ExchangeState::WakeLocked() {
  if (woken_ || !wake_) return;
  woken_ = true;
  wake_();
}

void ExchangeState::AddHeaders(std::vector<Header> headers) {
  const std::lock_guard lock(mutex_);
  std::ranges::move(headers, std::back_inserter(added_headers_));
}

// Requires the mutex.
void ExchangeState::SetHead(HttpResponse head) {
  std::ranges::move(added_headers_, std::back_inserter(head.headers));
  output_.head = std::move(head);
}

void ExchangeState::Respond(HttpResponse response) {
  const std::lock_guard lock(mutex_);
  if (answered_) return;
  answered_ = finished_ = output_.finished = true;
  if (response.failure) end_.failure = std::move(response.failure);
  SetHead(std::move(response));
  WakeLocked();
}

void ExchangeState::StartStream(HttpResponse head) {
  const std::lock_guard lock(mutex_);
  if (answered_) return;
  answered_ = streaming_ = output_.stream = true;
  SetHead(std::move(head));
  WakeLocked();
}

bool ExchangeState::Write(std::string_view events) {
  const std::lock_guard lock(mutex_);
  if (!streaming_ || finished_ || overflow_ || IsDead(closed_)) return false;
  if (events.empty()) return true;
  if (direct_ && SendDirect(events)) return true;
  if (UnsentBytes() + events.size() > max_unsent_) {
    overflow_ = output_.overflow = true;
    WakeLocked();
    return false;
  }
  output_.events.append(events);
  WakeLocked();
  return true;
}

// Requires the mutex. True: the event is sent, or the connection will send the rest of it.
bool ExchangeState::SendDirect(std::string_view events) {
  thread_local std::string frame;
  if (chunked_) {
    frame.clear();
    AppendChunk(frame, events);
    events = frame;
  }
  const auto taken = ::send(socket_, events.data(), events.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (taken <= 0) {
    direct_ = false;  // full or broken: the connection finds out
    return false;
  }
  const auto size = static_cast<std::size_t>(taken);
  direct_sent_.bytes += size;
  direct_sent_.last_sent = SteadyNow();
  if (size == events.size()) return true;
  direct_ = false;
  output_.framed = events.substr(size);
  WakeLocked();
  return true;
}

std::size_t ExchangeState::UnsentBytes() const {
  return in_flight_ + output_.framed.size() + output_.events.size();
}

void ExchangeState::Finish() {
  const std::lock_guard lock(mutex_);
  if (!streaming_ || finished_) return;
  finished_ = output_.finished = true;
  WakeLocked();
}

void ExchangeState::OnClose(std::function<void(CloseReason)> callback) {
  std::optional<CloseReason> closed;
  {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    closed = closed_;
    if (!closed) on_close_ = std::move(callback);
  }
  if (closed) callback(*closed);
}

void ExchangeState::Ended(RequestEnd end) {
  const std::lock_guard lock(mutex_);
  end_ = std::move(end);
}

void ExchangeState::Abandon() {
  std::function<void(CloseReason)> unused;  // destroyed without the mutex: it may own anything
  const std::lock_guard lock(mutex_);
  unused.swap(on_close_);
  if (finished_) return;
  finished_ = output_.finished = true;
  if (!end_.failure) end_.failure = RequestFailure{"internal", "the request was dropped"};
  if (!answered_) {
    SetHead({500, "text/plain; charset=utf-8", {}, "the request was dropped"});
  } else {
    output_.cut = true;
  }
  WakeLocked();
}

void ExchangeState::WakeSeen() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
}

ExchangeState::Output ExchangeState::Take() {
  const std::lock_guard lock(mutex_);
  in_flight_ = UnsentBytes();
  Output taken = std::exchange(output_, Output{});
  taken.overflow = overflow_;
  direct_ = socket_ >= 0 && in_flight_ == 0 && !taken.finished && !overflow_;
  return taken;
}

RequestEnd ExchangeState::TakeEnd() {
  const std::lock_guard lock(mutex_);
  return std::exchange(end_, {});
}

void ExchangeState::OpenDirect(int socket, bool chunked) {
  const std::lock_guard lock(mutex_);
  socket_ = socket;
  chunked_ = chunked;
}

void ExchangeState::HoldDirect() {
  const std::lock_guard lock(mutex_);
  direct_ = false;
}

ExchangeState::Direct ExchangeState::DirectSent() {
  const std::lock_guard lock(mutex_);
  return direct_sent_;
}

bool ExchangeState::Overflowed() {
  const std::lock_guard lock(mutex_);
  return overflow_;
}

bool ExchangeState::IsGone() {
  const std::lock_guard lock(mutex_);
  return IsDead(closed_);
}

void ExchangeState::Delivered() {
  const std::lock_guard lock(mutex_);
  in_flight_ = 0;
}

void ExchangeState::Close(CloseReason reason) {
  std::function<void(CloseReason)> callback;
  bool finished = false;
  {
    const std::lock_guard lock(mutex_);
    if (IsDead(closed_)) return;
    closed_ = reason;
    finished = finished_;
    callback.swap(on_close_);
  }
  // A finished answer has nothing left to stop.
  if (callback && !finished) callback(reason);
}

void ExchangeState::Detach() {
  const std::lock_guard lock(mutex_);
  wake_ = nullptr;
  direct_ = false;
  socket_ = -1;
}

}  // namespace penstock::router
