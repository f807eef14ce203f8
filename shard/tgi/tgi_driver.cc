#include "shard/tgi/tgi_driver.h"

#include <cstdint>
#include <random>
#include <utility>

#include "shard/service/shard_service.h"
#include "shard/service/socket_path.h"
#include "shard/tgi/barrier_stream.h"
#include "shard/tgi/root_barrier.h"
#include "shard/tgi/tgi_call_runner.h"
#include "shard/tgi/tgi_service.h"

namespace penstock::shard {
namespace {

constexpr const char* kServiceName = "generate.v3.TextGenerationService";

// Random, because shared memory outlives a process that dies while it joins, and pids are reused.
std::string FreshName() {
  std::random_device random;
  const std::uint64_t number = (std::uint64_t{random()} << 32) | random();
  return "penstock-tgi-" + std::to_string(number);
}

std::string SocketOf(const ListenAddress& listen, std::uint32_t rank) {
  const auto path = SocketPath(listen.socket_prefix, rank);
  return path.ok() ? *path : std::string();  // the server refuses a bad prefix
}

std::vector<std::string> UrlsOf(const ListenAddress& listen, const v1::DescribeResponse& facts) {
  if (!listen.tcp.empty()) return {listen.tcp};
  std::vector<std::string> urls;
  for (std::uint32_t rank = 0; rank < facts.world_size(); ++rank) {
    urls.push_back("unix://" + SocketOf(listen, rank));
  }
  return urls;
}

class TgiDriver final : public SecondDriver {
 public:
  TgiDriver(ServiceState& state, const ListenAddress& listen, std::string model_folder)
      : barrier_(MakeBarrier(state.Facts(), listen)),
        runner_(state, barrier_.get(), std::move(model_folder)),
        service_(state, runner_, UrlsOf(listen, state.Facts())) {}
  ~TgiDriver() override { Stop(); }

  std::vector<NamedService> Services() override {
    std::vector<NamedService> services{{kServiceName, &service_}};
    if (barrier_service_ != nullptr) services.push_back({"", barrier_service_.get()});
    return services;
  }

  void Stop() override {
    if (barrier_ != nullptr) barrier_->Stop();
  }

 private:
  // Null for several ranks on TCP: the barrier needs the Unix socket of rank 0.
  std::unique_ptr<RankBarrier> MakeBarrier(const v1::DescribeResponse& facts,
                                           const ListenAddress& listen) {
    if (facts.world_size() > 1 && !listen.tcp.empty()) return nullptr;
    if (facts.rank() > 0) return MakeRemoteBarrier(SocketOf(listen, 0));
    auto root = std::make_unique<RootBarrier>(facts.world_size(), FreshName());
    if (facts.world_size() > 1) barrier_service_ = MakeBarrierService(*root);
    return root;
  }

  std::unique_ptr<grpc::Service> barrier_service_;  // before barrier_, because MakeBarrier sets it
  std::unique_ptr<RankBarrier> barrier_;
  TgiCallRunner runner_;
  TgiService service_;
};

}  // namespace

SecondDriverFactory TgiDriverFactory(std::string model_folder) {
  return [folder = std::move(model_folder)](ServiceState& state, const ListenAddress& listen) {
    return std::make_unique<TgiDriver>(state, listen, folder);
  };
}

}  // namespace penstock::shard
