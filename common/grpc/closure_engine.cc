#include "common/grpc/closure_engine.h"

#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "common/thread_name.h"

namespace penstock {
namespace {

using Work = absl::AnyInvocable<void()>;
using Clock = std::chrono::steady_clock;

// The thread and what waits for it. Never destroyed: gRPC may use it until the process is gone.
class LaterThread {
 public:
  static LaterThread& Get() {
    static LaterThread& only = *new LaterThread;
    return only;
  }

  std::uint64_t Add(grpc_event_engine::experimental::EventEngine::Duration after, Work work) {
    const Clock::time_point due = DueAfter(after);
    const std::lock_guard lock(mutex_);
    const std::uint64_t id = ++last_id_;
    const auto entry = waiting_.emplace(due, Waiting{id, std::move(work)});
    places_.emplace(id, entry);
    if (!started_) Start();
    if (entry == waiting_.begin()) changed_.notify_one();
    return id;
  }

  bool Remove(std::uint64_t id) {
    Work gone;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(id);
    if (found == places_.end()) return false;
    gone = std::move(found->second->second.work);
    waiting_.erase(found->second);
    places_.erase(found);
    return true;
  }

  bool IsThisThread() {
    const std::lock_guard lock(mutex_);
    return thread_ == std::this_thread::get_id();
  }

 private:
  struct Waiting {
    std::uint64_t id;
    Work work;
  };
  using Queue = std::multimap<Clock::time_point, Waiting>;  // equal times: in order of arrival

  static Clock::time_point DueAfter(std::chrono::nanoseconds after) {
    const Clock::time_point now = Clock::now();
    return after < Clock::time_point::max() - now ? now + after : Clock::time_point::max();
  }

  // Under mutex_. Signals are for the threads that wait for them.
  void Start() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread([this] { Loop(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    thread_ = thread.get_id();
    thread.detach();
    started_ = true;
  }

  void Loop() {
    NameThread("grpc-later");
    std::unique_lock lock(mutex_);
    for (;;) {
      if (waiting_.empty()) {
        changed_.wait(lock);
      } else if (const auto due = waiting_.begin()->first; due > Clock::now()) {
        changed_.wait_until(lock, due);
      } else {
        RunFirst(lock);
      }
    }
  }

  void RunFirst(std::unique_lock<std::mutex>& lock) {
    Waiting first = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    places_.erase(first.id);
    lock.unlock();
    first.work();
    first.work = nullptr;
    lock.lock();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Queue waiting_;
  std::unordered_map<std::uint64_t, Queue::iterator> places_;
  std::uint64_t last_id_ = 0;
  bool started_ = false;
  std::thread::id thread_;
};

}  // namespace

bool ClosureEngine::IsWorkerThread() { return LaterThread::Get().IsThisThread(); }

void ClosureEngine::Run(Closure* closure) {
  Run([closure] { closure->Run(); });
}

void ClosureEngine::Run(absl::AnyInvocable<void()> closure) {
  LaterThread::Get().Add(Duration(0), std::move(closure));
}

ClosureEngine::TaskHandle ClosureEngine::RunAfter(Duration when, Closure* closure) {
  return RunAfter(when, [closure] { closure->Run(); });
}

ClosureEngine::TaskHandle ClosureEngine::RunAfter(Duration when,
                                                  absl::AnyInvocable<void()> closure) {
  const std::uint64_t id = LaterThread::Get().Add(when, std::move(closure));
  return {static_cast<std::intptr_t>(id), 0};
}

bool ClosureEngine::Cancel(TaskHandle handle) {
  return LaterThread::Get().Remove(static_cast<std::uint64_t>(handle.keys[0]));
}

absl::StatusOr<std::unique_ptr<ClosureEngine::Listener>> ClosureEngine::CreateListener(
    Listener::AcceptCallback, absl::AnyInvocable<void(absl::Status)>,
    const grpc_event_engine::experimental::EndpointConfig&,
    std::unique_ptr<grpc_event_engine::experimental::MemoryAllocatorFactory>) {
  return absl::UnimplementedError("this engine has no sockets");
}

ClosureEngine::ConnectionHandle ClosureEngine::Connect(
    OnConnectCallback on_connect, const ResolvedAddress&,
    const grpc_event_engine::experimental::EndpointConfig&,
    grpc_event_engine::experimental::MemoryAllocator, Duration) {
  Run([on_connect = std::move(on_connect)]() mutable {
    on_connect(absl::UnimplementedError("this engine has no sockets"));
  });
  return {};
}

bool ClosureEngine::CancelConnect(ConnectionHandle) { return false; }

std::unique_ptr<ClosureEngine::DNSResolver> ClosureEngine::GetDNSResolver(
    const DNSResolver::ResolverOptions&) {
  return nullptr;
}

}  // namespace penstock
