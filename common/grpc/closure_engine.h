// The part of an EventEngine that gRPC 1.51 uses: closures, at once or later. (Its sockets and
// names are still iomgr's.) One thread for all engines of the process, which starts with the first
// closure and sleeps until the next is due; gRPC's own looks at its lists once a second.
//
// gRPC may drop the last reference to its engine on the engine's own thread, so the thread belongs
// to the process, not to an engine. Closures must not block; gRPC's do not.
#pragma once

#include <grpc/event_engine/event_engine.h>

#include <memory>

namespace penstock {

class ClosureEngine final : public grpc_event_engine::experimental::EventEngine {
 public:
  bool IsWorkerThread() override;
  void Run(Closure* closure) override;
  void Run(absl::AnyInvocable<void()> closure) override;
  TaskHandle RunAfter(Duration when, Closure* closure) override;
  TaskHandle RunAfter(Duration when, absl::AnyInvocable<void()> closure) override;
  // False: it has run, or runs now.
  bool Cancel(TaskHandle handle) override;

  // Refused with UNIMPLEMENTED, or none.
  absl::StatusOr<std::unique_ptr<Listener>> CreateListener(
      Listener::AcceptCallback on_accept, absl::AnyInvocable<void(absl::Status)> on_shutdown,
      const grpc_event_engine::experimental::EndpointConfig& config,
      std::unique_ptr<grpc_event_engine::experimental::MemoryAllocatorFactory> memory) override;
  ConnectionHandle Connect(OnConnectCallback on_connect, const ResolvedAddress& address,
                           const grpc_event_engine::experimental::EndpointConfig& config,
                           grpc_event_engine::experimental::MemoryAllocator memory,
                           Duration timeout) override;
  bool CancelConnect(ConnectionHandle handle) override;
  std::unique_ptr<DNSResolver> GetDNSResolver(const DNSResolver::ResolverOptions& options) override;
};

}  // namespace penstock
