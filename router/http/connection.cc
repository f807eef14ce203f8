#include "router/http/connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "common/log.h"
#include "router/http/access_log.h"
#include "router/http/request_id.h"

namespace penstock::router {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// How long an application may take to end an answer after OnClose.
constexpr Duration kEndingGrace = std::chrono::seconds(1);
// Largest rest of a refused body that is read and dropped so that the client sees the answer.
constexpr std::uint64_t kLingerBytes = std::uint64_t{128} << 20;
// g++ 12 destroys some temporaries of a co_await expression twice: here every argument of an
// awaited call that owns memory is a named object.

Time After(Duration duration) { return SteadyNow() + duration; }

}  // namespace

Connection::Connection(Transport transport, std::string peer, ConnectionContext context)
    : context_(context),
      transport_(std::move(transport)),
      event_(transport_.socket().get_executor(), std::chrono::steady_clock::time_point::max()),
      timer_(transport_.socket().get_executor()),
      peer_(std::move(peer)),
      reader_(context_.options.limits) {}

Connection::~Connection() {
  if (!exchange_) return;
  exchange_->Close(CloseReason::kClientGone);
  exchange_->Detach();
}

void Connection::Start(std::function<void()> on_end) {
  auto done = [self = shared_from_this(), on_end = std::move(on_end)](std::exception_ptr failure) {
    // Only a failed allocation throws here. The connection ends; the server continues.
    if (failure) log::Error("a connection ended by an exception");
    if (self->exchange_) {
      self->exchange_->Close(CloseReason::kClientGone);
      self->exchange_->Detach();
    }
    error_code ignored;
    self->transport_.socket().close(ignored);
    self->timer_.cancel();
    on_end();
  };
  asio::co_spawn(transport_.socket().get_executor(), Run(), std::move(done));
}

void Connection::Drain() {
  draining_ = true;
  Wake();
}

void Connection::Abort() {
  draining_ = aborting_ = true;
  abort_at_ = After(2 * kEndingGrace);
  Wake();
}

Connection::Awaitable<void> Connection::Run() {
  error_code ec;
  transport_.socket().non_blocking(true, ec);
  if (ec) co_return;
  bool more = true;
  while (more) more = co_await ServeOne();
  // Plain TCP needs no message that nothing follows.
  if (transport_.encrypted() && !cut_ && !aborting_) co_await EndSending();
}

// Returns true if the connection can carry another request.
Connection::Awaitable<bool> Connection::ServeOne() {
  reader_.Reset();
  too_slow_ = false;
  Present present;
  if (!co_await ReadHead()) {
    if (reader_.failure().status == 0) co_return false;
    present.head = std::move(reader_.head());
    co_return co_await RefuseAndClose(present, reader_.failure());
  }
  present.head = std::move(reader_.head());
  present.head.peer = peer_;
  present.head.arrived = SteadyNow();
  const std::string_view given = present.head.Find("x-request-id");
  present.head.request_id = IsRequestId(given) ? std::string(given) : MakeRequestId();
  present.keep_alive = reader_.keep_alive() && !draining_;
  present.match = context_.application.Match(present.head);
  present.head.tenant = present.match.tenant;
  if (present.match.refusal) {
    // An unread body makes the connection useless for another request.
    const bool unread = reader_.has_body();
    if (unread) present.keep_alive = false;
    const bool sent = co_await Send(present, *present.match.refusal);
    FinishRequest(present, sent);
    if (sent && unread) co_await Linger();
    co_return sent&& present.keep_alive;
  }
  co_return co_await ReadBody(present);
}

// Returns false if the connection is over; if the reader has a failure, that is the answer.
Connection::Awaitable<bool> Connection::ReadHead() {
  Time deadline = After(context_.options.keep_alive);
  bool started = false;
  while (true) {
    if (!in_.empty() && !started) {
      started = true;
      deadline = After(context_.options.head_timeout);
    }
    switch (in_.empty() ? RequestReader::State::kNeedMore : reader_.ReadHead(in_)) {
      case RequestReader::State::kReady:
        co_return true;
      case RequestReader::State::kFailed:
        co_return false;
      case RequestReader::State::kNeedMore:
        break;
    }
    if (read_closed_ || aborting_ || (draining_ && !started)) co_return false;
    WatchReadable(context_.options.limits.head_bytes);
    if (!co_await Wait(deadline)) {
      if (!started) co_return false;
      reader_.Fail({408, "the request head must arrive within " +
                             MillisecondsText(context_.options.head_timeout) + " ms"});
      co_return false;
    }
  }
}

// Reserves memory, sends 100 Continue if the client waits for it, reads the body and answers.
Connection::Awaitable<bool> Connection::ReadBody(Present& present) {
  if (!reader_.BodyFits()) co_return co_await RefuseAndClose(present, reader_.failure());
  const std::size_t reserved =
      reader_.has_body() ? reader_.content_length().value_or(context_.options.limits.body_bytes)
                         : 0;
  present.memory = context_.bodies.Take(reserved);
  if (!present.memory) {
    reader_.Fail({503, "the server holds too many bodies, retry"});
    co_return co_await RefuseAndClose(present, reader_.failure());
  }
  if (reader_.has_body()) {
    if (reader_.expects_continue() && in_.empty() && !co_await Write(kContinue)) co_return false;
    if (!co_await ReadBodyBytes(present)) {
      if (reader_.failure().status == 0) co_return false;
      co_return co_await RefuseAndClose(present, reader_.failure());
    }
  }
  co_return co_await Answer(present);
}

Connection::Awaitable<bool> Connection::ReadBodyBytes(Present& present) {
  const Time start = present.head.arrived + context_.options.body_timeout;
  const std::uint64_t before = received_;
  while (true) {
    switch (reader_.ReadBody(in_)) {
      case RequestReader::State::kReady:
        co_return true;
      case RequestReader::State::kFailed:
        co_return false;
      case RequestReader::State::kNeedMore:
        break;
    }
    if (read_closed_ || aborting_) co_return false;
    WatchReadable(context_.options.limits.body_bytes);
    const Time deadline = start + std::chrono::seconds((received_ - before) >> 10);
    if (!co_await Wait(deadline)) {
      reader_.Fail({408, "the body must arrive within " +
                             MillisecondsText(context_.options.body_timeout) +
                             " ms or at 1 KiB/s"});
      co_return false;
    }
  }
}

Connection::Awaitable<bool> Connection::Answer(Present& present) {
  auto wake = [weak = weak_from_this(), executor = transport_.socket().get_executor()] {
    asio::post(executor, [weak] {
      const auto self = weak.lock();
      if (!self) return;
      if (self->exchange_) self->exchange_->WakeSeen();
      self->Wake();
    });
  };
  exchange_ = std::make_shared<ExchangeState>(context_.options.stream_buffer, std::move(wake));
  const Duration total = context_.options.total_timeout;
  answer_deadline_ = total == Duration{0} ? Time::max() : After(total);
  if (present.match.timeout) {
    answer_deadline_ = std::min(answer_deadline_, present.head.arrived + *present.match.timeout);
  }
  auto handle = std::move(present.match.handle);
  present.head.read = SteadyNow();
  HttpRequest request{present.head, reader_.TakeBody()};
  if (request.body.size() < LargeRequests::kBytes) {
    handle(std::move(request), MakeExchange(exchange_));
  } else {
    context_.large.Add({std::move(handle), std::move(request), exchange_, present.memory});
  }
  handle = nullptr;
  const bool delivered = co_await AnswerSteps(present, *exchange_);
  present.sent += exchange_->DirectSent().bytes;
  exchange_->Close(too_slow_ ? CloseReason::kTooSlow : CloseReason::kClientGone);
  present.end = exchange_->TakeEnd();
  exchange_->Detach();
  exchange_.reset();
  FinishRequest(present, delivered);
  co_return delivered&& present.keep_alive;
}

// Writes what the application gives until the answer is complete. False: it was not delivered.
Connection::Awaitable<bool> Connection::AnswerSteps(Present& present, ExchangeState& exchange) {
  bool streaming = false;
  std::string_view filler;  // of the stream, while it is silent
  Time last_sent = SteadyNow();
  Time cut_at = Time::max();
  while (true) {
    ExchangeState::Output output = exchange.Take();
    if (output.overflow) {
      too_slow_ = true;
      co_return false;
    }
    if (output.head && !output.stream) co_return co_await Send(present, *output.head);
    if (output.head) {
      filler = output.head->filler;
      present.status = output.head->status;
      present.keep_alive = present.keep_alive && !present.head.http10;
    }
    const bool opened = output.head.has_value();
    const std::string bytes = FrameEvents(present, output, streaming);
    if (!bytes.empty()) {
      if (!co_await Write(bytes)) co_return false;
      exchange.Delivered();
      if (opened && !transport_.encrypted()) {
        exchange.OpenDirect(transport_.socket().native_handle(), !present.head.http10);
      }
      present.sent += bytes.size();
      last_sent = SteadyNow();
    }
    if (output.finished) co_return !output.cut;
    if (!bytes.empty()) continue;
    last_sent = std::max(last_sent, exchange.DirectSent().last_sent);
    if (!co_await WaitForAnswer(exchange, filler.empty() ? Time::max() : last_sent, cut_at)) {
      co_return false;
    }
    exchange.HoldDirect();
    last_sent = std::max(last_sent, exchange.DirectSent().last_sent);
    const bool silent =
        !filler.empty() && SteadyNow() - last_sent >= context_.options.stream_comment;
    if (silent) {
      std::string bytes_in_silence;
      if (present.head.http10) {
        bytes_in_silence = filler;
      } else {
        AppendChunk(bytes_in_silence, filler);
      }
      if (!co_await Write(bytes_in_silence)) co_return false;
      last_sent = SteadyNow();
    }
  }
}

// One wait for the application, with the reasons to end an answer early. False: the client is gone
// or the application did not end in time.
Connection::Awaitable<bool> Connection::WaitForAnswer(ExchangeState& exchange, Time last_sent,
                                                      Time& cut_at) {
  const HttpOptions& options = context_.options;
  if (read_closed_) co_return false;
  if (aborting_ && cut_at == Time::max()) {
    cut_at = After(kEndingGrace);
    exchange.Close(CloseReason::kStopping);
    co_return true;
  }
  WatchReadable(options.pipelined_bytes);
  Time deadline = std::min(cut_at, answer_deadline_);
  if (last_sent != Time::max()) deadline = std::min(deadline, last_sent + options.stream_comment);
  co_await Wait(deadline);
  const Time now = SteadyNow();
  if (now >= cut_at) co_return false;
  if (now >= answer_deadline_ && cut_at == Time::max()) {
    cut_at = After(kEndingGrace);
    answer_deadline_ = Time::max();
    exchange.Close(CloseReason::kTimeout);
  }
  co_return true;
}

std::string Connection::FrameEvents(const Present& present, ExchangeState::Output& output,
                                    bool& streaming) const {
  std::string bytes = std::move(output.framed);
  const bool chunked = !present.head.http10;
  if (output.head) {
    streaming = true;
    bytes = WriteHead(*output.head, {.http10 = present.head.http10,
                                     .keep_alive = present.keep_alive,
                                     .end = chunked ? BodyEnd::kChunked : BodyEnd::kClose,
                                     .request_id = present.head.request_id});
  }
  if (chunked) {
    AppendChunk(bytes, output.events);
    if (output.finished && !output.cut) bytes.append(kLastChunk);
  } else {
    bytes.append(output.events);
  }
  return bytes;
}

Connection::Awaitable<bool> Connection::Send(Present& present, const HttpResponse& response) {
  std::string bytes = WriteHead(response, {.http10 = present.head.http10,
                                           .keep_alive = present.keep_alive,
                                           .end = BodyEnd::kLength,
                                           .request_id = present.head.request_id});
  if (present.head.method != "HEAD") bytes.append(response.body);
  present.status = response.status;
  present.end.failure = response.failure;
  present.sent = bytes.size();
  co_return co_await Write(bytes);
}

Connection::Awaitable<bool> Connection::RefuseAndClose(Present& present,
                                                       const HttpFailure& failure) {
  present.keep_alive = false;
  if (present.head.request_id.empty()) present.head.request_id = MakeRequestId();
  present.head.peer = peer_;
  if (present.head.arrived == Time{}) present.head.arrived = SteadyNow();
  const HttpResponse response = context_.application.Refuse(present.head, failure);
  const bool sent = co_await Send(present, response);
  FinishRequest(present, sent);
  if (sent) co_await Linger();
  co_return false;
}

// Sends now what the kernel takes, and waits for room for the rest.
Connection::Awaitable<bool> Connection::Write(std::string_view data) {
  Time stalled = Time::max();
  while (!data.empty()) {
    error_code ec;
    const std::size_t taken = transport_.WriteSome(data, ec);
    if (!ec) {
      data.remove_prefix(taken);
      stalled = Time::max();
      continue;
    }
    if (ec != asio::error::would_block) {
      read_closed_ = true;
      co_return false;
    }
    if (stalled == Time::max()) stalled = After(context_.options.write_stall);
    WatchWritable();
    WatchReadable(context_.options.pipelined_bytes);
    const bool in_time = co_await Wait(std::min(stalled, abort_at_));
    too_slow_ = !in_time || (exchange_ && exchange_->Overflowed());
    if (too_slow_ || read_closed_) co_return false;
  }
  co_return true;
}

// Says that nothing more will be sent. False: the client cannot be notified.
Connection::Awaitable<bool> Connection::EndSending() {
  const Time deadline = After(context_.options.linger);
  error_code ec;
  while (!sending_ended_) {
    transport_.EndSending(ec);
    if (ec && ec != asio::error::would_block) co_return false;
    sending_ended_ = !ec;
    if (sending_ended_) break;
    WatchWritable();
    if (!co_await Wait(deadline)) co_return false;
  }
  co_return true;
}

// Says the same, and drops what the client still sends: closing with unread
// bytes would reset the connection and could take the answer away from the client.
Connection::Awaitable<void> Connection::Linger() {
  if (!co_await EndSending()) co_return;
  const Time deadline = After(context_.options.linger);
  const std::uint64_t before = received_;
  while (!read_closed_ && received_ - before < kLingerBytes && !aborting_) {
    in_.clear();
    WatchReadable(1);
    if (!co_await Wait(deadline)) co_return;
  }
}

void Connection::FinishRequest(Present& present, bool delivered) {
  cut_ = !delivered;
  std::optional<RequestFailure>& failure = present.end.failure;
  int status = present.status;
  if (present.end.delivered) present.end.delivered(SteadyNow());
  if (!delivered && (read_closed_ || too_slow_)) {
    status = 499;  // the client did not take the answer
    const char* why = too_slow_ ? "the client reads too slowly" : "the client went away";
    if (!failure) failure = RequestFailure{"cancelled", why};
  } else if (!delivered) {
    status = 500;
  }
  context_.metrics.http().Response(present.match.route, status, failure ? failure->kind : "");
  if (present.match.quiet && status < 400) return;
  const AnswerRecord record{.head = present.head,
                            .peer = peer_,
                            .route = present.match.route,
                            .status = status,
                            .sent = present.sent,
                            .end = present.end,
                            .encrypted = transport_.encrypted()};
  LogAnswer(record);
  if (context_.options.audit) context_.options.audit(record);
}

Connection::Awaitable<bool> Connection::Wait(Time deadline) {
  if (!signalled_) {
    if (deadline != Time::max()) ArmTimer(deadline);
    error_code ignored;
    co_await event_.async_wait(asio::redirect_error(asio::use_awaitable_t<Executor>(), ignored));
  }
  signalled_ = false;
  co_return deadline == Time::max() || SteadyNow() < deadline;
}

void Connection::Wake() {
  signalled_ = true;
  event_.cancel();
}

// A timer that fires early costs one needless wake-up; setting it again for each wait costs more.
void Connection::ArmTimer(Time deadline) {
  if (armed_ <= deadline) return;
  armed_ = deadline;
  timer_.expires_at(std::chrono::steady_clock::time_point(deadline.time_since_epoch()));
  timer_.async_wait([self = shared_from_this()](error_code ec) {
    if (ec) return;
    self->armed_ = Time::max();
    self->Wake();
  });
}

void Connection::WatchReadable(std::size_t room) {
  if (reading_ || read_closed_ || in_.size() >= room) return;
  reading_ = true;
  transport_.socket().async_wait(Transport::Socket::wait_read,
                                 [self = shared_from_this()](error_code ec) {
                                   self->reading_ = false;
                                   if (ec) {
                                     self->read_closed_ = true;
                                   } else {
                                     self->ReadAvailable();
                                   }
                                   self->Wake();
                                 });
}

void Connection::ReadAvailable() {
  static thread_local std::array<char, std::size_t{64} << 10> scratch;
  error_code ec;
  const std::size_t count = transport_.ReadSome(scratch, ec);
  if (ec == asio::error::would_block) return;
  if (ec) {
    read_closed_ = true;
    return;
  }
  received_ += count;
  in_.append(scratch.data(), count);
}

void Connection::WatchWritable() {
  if (writing_) return;
  writing_ = true;
  transport_.socket().async_wait(Transport::Socket::wait_write,
                                 [self = shared_from_this()](error_code) {
                                   self->writing_ = false;
                                   self->Wake();
                                 });
}

}  // namespace penstock::router
