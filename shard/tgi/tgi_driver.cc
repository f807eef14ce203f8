#include "shard/tgi/tgi_driver.h"

#include <cstdint>
#include <random>
#include <utility>

#include "shard/service/shard_service.h"
#include "shard/service/socket_path.h"
#include "shard/tgi/meeting_place.h"
#include "shard/tgi/rank_meeting.h"
#include "shard/tgi/tgi_runner.h"
#include "shard/tgi/tgi_service.h"

namespace penstock::shard {
namespace {

constexpr const char* kServiceName = "generate.v3.TextGenerationService";

// Ranks meet on the socket of rank 0, which those on TCP have not.
class NoGate final : public RankGate {
 public:
  void Meet(RankArrival, VerdictCallback answer) override {
    answer({absl::FailedPreconditionError(
                "generate.v3 on several ranks needs Unix sockets: start with --shard-uds-path"),
            0,
            {}});
  }
  void Stop() override {}
};

// Of shared memory, which outlives a process that dies while it joins: pids come again.
std::string FreshName() {
  std::random_device random;
  const std::uint64_t number = (std::uint64_t{random()} << 32) | random();
  return "penstock-tgi-" + std::to_string(number);
}

std::string SocketOf(const ListenAddress& listen, std::uint32_t rank) {
  const auto path = SocketPath(listen.socket_prefix, rank);
  return path.ok() ? *path : std::string();  // a bad prefix ends the start anyway
}

std::vector<std::string> UrlsOf(const ListenAddress& listen, const EngineFacts& facts) {
  if (!listen.tcp.empty()) return {listen.tcp};
  std::vector<std::string> urls;
  for (std::uint32_t rank = 0; rank < facts.world_size; ++rank) {
    urls.push_back("unix://" + SocketOf(listen, rank));
  }
  return urls;
}

class TgiDriver final : public SecondDriver {
 public:
  TgiDriver(ServiceState& state, const ListenAddress& listen, TgiOptions options)
      : gate_(MakeGate(*state.Facts(), listen)),
        runner_(state, *gate_, std::move(options.model_folder)),
        service_(state, runner_, UrlsOf(listen, *state.Facts())) {}
  ~TgiDriver() override { Stop(); }

  std::vector<NamedService> Services() override {
    std::vector<NamedService> services{{kServiceName, &service_}};
    if (meeting_ != nullptr) services.push_back({"", meeting_.get()});
    return services;
  }

  void Start(grpc::CompletionQueue& calls) override { calls_ = &calls; }
  void Stop() override { gate_->Stop(); }

 private:
  std::unique_ptr<RankGate> MakeGate(const EngineFacts& facts, const ListenAddress& listen) {
    if (facts.world_size > 1 && !listen.tcp.empty()) return std::make_unique<NoGate>();
    if (facts.rank > 0) {
      return MakeFollowingGate(SocketOf(listen, 0),
                               [this]() -> grpc::CompletionQueue& { return *calls_; });
    }
    auto place = std::make_unique<MeetingPlace>(facts.world_size, FreshName());
    if (facts.world_size > 1) meeting_ = MakeRankMeetingService(*place);
    return place;
  }

  grpc::CompletionQueue* calls_ = nullptr;  // set before a call can come
  std::unique_ptr<ServedService> meeting_;  // before gate_, which makes it
  std::unique_ptr<RankGate> gate_;
  TgiRunner runner_;
  TgiService service_;
};

}  // namespace

SecondDriverFactory TgiDriverFactory(TgiOptions options) {
  return [options = std::move(options)](ServiceState& state, const ListenAddress& listen) {
    return std::make_unique<TgiDriver>(state, listen, options);
  };
}

}  // namespace penstock::shard
