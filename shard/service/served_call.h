// Calls of a gRPC server on a completion queue of ours, in the shape of gRPC's reactors: an object
// per call, which starts reads and writes and is told how they ended. (The reactors of gRPC itself
// come with two threads that look round every second: docs/decisions/0032.)
//
// A call is made before it comes: Serve makes one and offers it to gRPC, and when a client's call
// has taken it, the next. The queue keeps it until all its operations have ended.
//
// Threads: On... run on the queue's thread, one at a time, and must not block. StartRead,
// StartWrite and Finish may come from any thread; at most one read, one write, and Finish once,
// after the last write. Every call must Finish, a cancelled one too.
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <functional>
#include <memory>
#include <type_traits>

#include "shard/service/call_queue.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace penstock::shard {

// A service whose calls are taken one method at a time.
class ServedService {
 public:
  virtual ~ServedService() = default;
  virtual grpc::Service& Registered() = 0;
  // The server has started: calls come from now on, and are told so once the queue starts.
  virtual void Listen(CallQueue& queue) = 0;
};

class ServedCall {
 public:
  virtual ~ServedCall() = default;
  ServedCall(const ServedCall&) = delete;
  ServedCall& operator=(const ServedCall&) = delete;

  // Of Serve: `again` offers the next call when this one is taken.
  void Expect(CallQueue& queue, std::shared_ptr<ServedCall> self, std::function<void()> again);

 protected:
  ServedCall() = default;

  // A client's call has come.
  virtual void OnStart() = 0;
  // Not ok: there is nothing more to read.
  virtual void OnReadDone(bool) {}
  // Not ok: the client is gone.
  virtual void OnWriteDone(bool) {}
  // Streams only.
  virtual void OnCancel() {}
  // Finished, and nothing is under way.
  virtual void OnDone() {}

  // For the kinds of calls: tags, and counting what is under way.
  void* Arrival() { return &arrival_; }
  void* Read() { return Begin(read_); }
  void* Write() { return Begin(write_); }
  void* End() { return &end_; }
  void WatchForCancel();

  grpc::ServerContext context_;

 private:
  using Step = MemberOperation<ServedCall>;

  void* Begin(Step& step);
  void Arrived(bool ok);
  void ReadEnded(bool ok);
  void WriteEnded(bool ok);
  void Ended(bool ok);
  void Closed(bool ok);
  void Leave();

  Step arrival_{*this, &ServedCall::Arrived};
  Step read_{*this, &ServedCall::ReadEnded};
  Step write_{*this, &ServedCall::WriteEnded};
  Step end_{*this, &ServedCall::Ended};
  Step closed_{*this, &ServedCall::Closed};
  std::atomic<int> under_way_{1};  // the end of the call is, from the beginning
  CallQueue* queue_ = nullptr;
  std::function<void()> again_;
};

// One request, one response.
class AnsweredCall : public ServedCall {
 public:
  // Once, any thread; the call may be gone when it returns. The response counts if OK.
  virtual void Finish(const grpc::Status& status) = 0;
  const grpc::ServerContext& context() const { return context_; }
};

template <typename Request, typename Response>
class UnaryCall final : public AnsweredCall {
 public:
  using Handler = std::function<void(UnaryCall&)>;
  explicit UnaryCall(Handler handler) : handler_(std::move(handler)) {}

  const Request& request() const { return request_; }
  Response& response() { return response_; }
  void Finish(const grpc::Status& status) override { writer_.Finish(response_, status, End()); }

  template <typename Service, typename Method>
  void Offer(Service& service, Method method, CallQueue& queue) {
    (service.*method)(&context_, &request_, &writer_, &queue.completions(), &queue.completions(),
                      Arrival());
  }

 private:
  void OnStart() override { handler_(*this); }

  const Handler handler_;
  Request request_;
  Response response_;
  grpc::ServerAsyncResponseWriter<Response> writer_{&context_};
};

// One request, a stream of responses.
template <typename Request, typename Response>
class WriteCall : public ServedCall {
 public:
  template <typename Service, typename Method>
  void Offer(Service& service, Method method, CallQueue& queue) {
    WatchForCancel();
    (service.*method)(&context_, &request_, &writer_, &queue.completions(), &queue.completions(),
                      Arrival());
  }

 protected:
  const Request& request() const { return request_; }
  void StartWrite(const Response& message) { writer_.Write(message, Write()); }
  void Finish(const grpc::Status& status) { writer_.Finish(status, End()); }

 private:
  Request request_;
  grpc::ServerAsyncWriter<Response> writer_{&context_};
};

// A stream each way.
template <typename Request, typename Response>
class BidiCall : public ServedCall {
 public:
  template <typename Service, typename Method>
  void Offer(Service& service, Method method, CallQueue& queue) {
    WatchForCancel();
    (service.*method)(&context_, &stream_, &queue.completions(), &queue.completions(), Arrival());
  }

 protected:
  void StartRead(Request* into) { stream_.Read(into, Read()); }
  void StartWrite(const Response& message) { stream_.Write(message, Write()); }
  void Finish(const grpc::Status& status) { stream_.Finish(status, End()); }

 private:
  grpc::ServerAsyncReaderWriter<Response, Request> stream_{&context_};
};

// Takes the calls of one method. `make` gives the object of each.
template <typename Call, typename Service, typename Method>
void Serve(Service& service, Method method, CallQueue& queue,
           std::function<std::shared_ptr<Call>()> make) {
  const std::shared_ptr<Call> call = make();
  call->Expect(queue, call,
               [&service, method, &queue, make] { Serve(service, method, queue, make); });
  call->Offer(service, method, queue);
}

template <typename Service, typename Base, typename Request, typename Response>
void ServeUnary(Service& service,
                void (Base::*method)(grpc::ServerContext*, Request*,
                                     grpc::ServerAsyncResponseWriter<Response>*,
                                     grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*),
                CallQueue& queue,
                std::type_identity_t<std::function<void(UnaryCall<Request, Response>&)>> handler) {
  using Call = UnaryCall<Request, Response>;
  Serve<Call>(service, method, queue, [handler] { return std::make_shared<Call>(handler); });
}

}  // namespace penstock::shard
