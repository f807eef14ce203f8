// One answer on its way from the application (any thread) to a connection (its io thread).
//
// The application appends events under a mutex and wakes the connection once. The connection takes
// all pending events, so a slow client gets them in one write. The bound counts the bytes that the
// client has not taken, including the write in progress. A stream that exceeds it ends (kTooSlow),
// because neither waiting nor dropping events is possible.
//
// While nothing is pending, the application's thread sends an event itself (OpenDirect). This saves
// waking the io thread, which costs as much as the send. The io thread sends what the kernel does
// not take at once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/time.h"
#include "router/http/application.h"

namespace penstock::router {

class ExchangeState final : public Exchange {
 public:
  // `wake` is called with the mutex held and must only post; not again until WakeSeen.
  ExchangeState(std::size_t max_behind, std::function<void()> wake);

  // --- The application's side.
  void AddHeaders(std::vector<Header> headers) override;
  void Respond(HttpResponse response) override;
  void StartStream(HttpResponse head) override;
  bool Write(std::string_view events) override;
  void Finish() override;
  void OnClose(std::function<void(CloseReason)> callback) override;
  void Ended(RequestEnd end) override;
  void Abandon();  // the application let go of it

  // --- The connection's side.
  struct Output {
    std::optional<HttpResponse> head;
    bool stream = false;    // `head` opened a stream
    std::string framed;     // the rest of a direct write, goes out first
    std::string events;     // not yet framed
    bool finished = false;  // nothing will follow
    bool overflow = false;  // the client is too far behind
    bool cut = false;       // the application left a stream without its end
  };
  // The connection has received `wake`. Take does not imply this: a connection that is busy writing
  // must still be told of an overflow.
  void WakeSeen();
  Output Take();
  // From now on, whenever Take has found nothing, events may be sent on this non-blocking socket by
  // the application's thread, as chunks or plain; until Detach. The head is out.
  void OpenDirect(int socket, bool chunked);
  // Until the next Take only the connection writes.
  void HoldDirect();
  // Bytes that the application's threads sent, and the time of the last send.
  struct Direct {
    std::size_t bytes = 0;
    Time last_sent{};
  };
  Direct DirectSent();
  bool Overflowed();
  // No answer can be sent any more. Any thread.
  bool IsGone();
  RequestEnd TakeEnd();
  // The client took all that was handed out.
  void Delivered();
  // Ends the exchange for the application. After kClientGone and kTooSlow nothing more is taken.
  void Close(CloseReason reason);
  // No wake and no direct write after this.
  void Detach();

 private:
  void WakeLocked();
  void SetHead(HttpResponse head);
  bool SendDirect(std::string_view events);
  std::size_t UnsentBytes() const;

  const std::size_t max_unsent_;
  std::mutex mutex_;
  std::function<void()> wake_;
  bool woken_ = false;
  Output output_;
  std::vector<Header> added_headers_;
  bool answered_ = false;  // Respond or StartStream was called
  bool streaming_ = false;
  bool finished_ = false;
  bool overflow_ = false;
  std::size_t in_flight_ = 0;
  int socket_ = -1;      // of direct writes
  bool chunked_ = true;  // their framing
  bool direct_ = false;  // the connection waits and has nothing to write
  Direct direct_sent_;
  std::optional<CloseReason> closed_;
  RequestEnd end_;
  std::function<void(CloseReason)> on_close_;
};

// The handle that the application holds. Abandons the exchange when its last copy is gone.
std::shared_ptr<Exchange> MakeExchange(std::shared_ptr<ExchangeState> state);

}  // namespace penstock::router
