#include "router/dispatch/shard_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <string_view>
#include <utility>

#include "common/log.h"
#include "common/socket_names.h"
#include "common/status.h"
#include "penstock/v1/shard.grpc.pb.h"
#include "proto/protocol_version.h"
#include "router/dispatch/execute_stream.h"
#include "router/dispatch/grpc_status.h"

namespace penstock::router {
namespace {

// Results hold at most a batch of tokens with alternatives; plans hold prompts.
constexpr int kMaxMessageBytes = 64 * 1024 * 1024;
constexpr int kReconnectMs = 100;  // at first; doubles
constexpr int kMostReconnectMs = 1'000;
constexpr int kTcpConnectMs = 2'000;  // a TLS handshake over a network
constexpr std::chrono::milliseconds kAskWhy{500};
constexpr std::chrono::milliseconds kSilentWait{1'000};  // then the wait is logged
constexpr int kKeepaliveMs = 10'000;

constexpr std::chrono::milliseconds kMostPingPause{1'000};

constexpr std::string_view kTcp = "tcp:";

std::shared_ptr<grpc::ChannelCredentials> MutualTls(const TlsIdentity& tls) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = tls.authority;
  options.pem_private_key = tls.key;
  options.pem_cert_chain = tls.certificate;
  return grpc::SslCredentials(options);
}

// HTTP/2 pings while the group is formed. gRPC's threads answer them while the model thread loads.
// A stopped process does not answer.
void SetKeepalive(grpc::ChannelArguments& arguments, std::chrono::milliseconds silence) {
  if (silence.count() <= 0) return;
  const auto pause = std::min<std::chrono::milliseconds>(kMostPingPause, silence / 2);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(pause.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>((silence - pause).count()));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const TlsIdentity* tls,
                                           std::chrono::milliseconds silence) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMostReconnectMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Parts of gRPC that each message would pass. No call is retried, and nothing is compressed.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX);  // never
  if (address.starts_with(kTcp)) {
    // A machine that fails does not close its connections.
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA,
                     0);  // gRPC's default stops after two pings
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kTcpConnectMs);
    return grpc::CreateCustomChannel(address.substr(kTcp.size()), MutualTls(*tls), arguments);
  }
  SetKeepalive(arguments, silence);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return grpc::CreateCustomChannel("unix:" + address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

ShardAdapter FromWire(const v1::Adapter& wire) {
  return {wire.id(), wire.folder(), wire.rank(), wire.bytes()};
}

ShardFacts ToFacts(const v1::DescribeResponse& wire) {
  ShardFacts facts;
  facts.dtype = wire.dtype();
  facts.device = wire.device();
  facts.backend = wire.backend();
  facts.fingerprint = wire.fingerprint();
  facts.rank = wire.rank();
  facts.world_size = wire.world_size();
  facts.vocabulary = wire.vocabulary();
  facts.max_position = wire.max_position();
  facts.block_size = wire.block_size();
  facts.padded_attention = wire.attention() == v1::ATTENTION_LAYOUT_PADDED;
  facts.length_rule = static_cast<LengthRule>(wire.length_rule());
  facts.original_length = wire.original_length();
  if (wire.has_pooling()) {
    const v1::Pooling& pooling = wire.pooling();
    facts.vectors = VectorFacts{pooling.task() == "classify",
                                pooling.pooling(),
                                pooling.outputs(),
                                pooling.normalized(),
                                {pooling.labels().begin(), pooling.labels().end()},
                                pooling.sigmoid(),
                                pooling.plain_scores()};
    facts.whole_texts = pooling.whole_texts();
  }
  facts.capabilities.assign(wire.capabilities().begin(), wire.capabilities().end());
  for (const v1::Adapter& adapter : wire.adapters()) facts.adapters.push_back(FromWire(adapter));
  for (const v1::KvGroup& group : wire.kv_groups()) {
    facts.kv_groups.push_back({group.bytes_per_token(), group.layers(), group.window()});
  }
  facts.state_layers = wire.state_layers();
  facts.state_bytes = wire.state_bytes();
  facts.eos_token_ids.assign(wire.eos_token_ids().begin(), wire.eos_token_ids().end());
  return facts;
}

}  // namespace

struct ShardClient::Connection {
  Connection(const std::string& address, const TlsIdentity* tls, std::chrono::milliseconds silence)
      : channel(MakeChannel(address, tls, silence)), stub(v1::Shard::NewStub(channel)) {}
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Shard::Stub> stub;
};

ShardClient::ShardClient(const std::string& address, std::uint32_t rank, std::stop_token stop,
                         const TlsIdentity* tls, std::chrono::milliseconds silence)
    : address_(address),
      rank_(rank),
      stop_(std::move(stop)),
      silence_(silence),
      connection_(std::make_unique<Connection>(address, tls, silence)) {}

ShardClient::~ShardClient() = default;

absl::Status ShardClient::WithRank(const absl::Status& status, const char* call) const {
  return WithContext(status, ShardName(std::nullopt, rank_) + ": " + call);
}

absl::StatusOr<ShardFacts> ShardClient::Describe(Deadline deadline) {
  const Deadline patience = std::chrono::system_clock::now() + kSilentWait;
  absl::StatusOr<ShardFacts> facts = DescribeBy(std::min(deadline, patience));
  if (absl::IsDeadlineExceeded(facts.status()) && patience < deadline) {
    log::Info("waiting for " + ShardName(std::nullopt, rank_) + " at " + address_);
    facts = DescribeBy(deadline);
  }
  if (!facts.ok()) return WithRank(WhyUnreachable(facts.status()), "Describe");
  return facts;
}

absl::StatusOr<ShardFacts> ShardClient::DescribeBy(Deadline deadline) {
  grpc::ClientContext context;
  const std::stop_callback on_stop(stop_, [&context] { context.TryCancel(); });
  context.set_deadline(deadline);
  context.set_wait_for_ready(true);
  v1::DescribeResponse response;
  PENSTOCK_RETURN_IF_ERROR(FromGrpc(connection_->stub->Describe(&context, {}, &response)));
  if (response.protocol_version() != proto::kProtocolVersion) {
    return absl::FailedPreconditionError(
        "the shard speaks version " + std::to_string(response.protocol_version()) +
        " of the protocol, this router version " + std::to_string(proto::kProtocolVersion) +
        "; start both from the same release");
  }
  return ToFacts(response);
}

// A call that waits for the channel ends with DEADLINE_EXCEEDED and hides its error. A call
// that does not wait returns that error.
absl::Status ShardClient::WhyUnreachable(absl::Status status) {
  if (status.code() == absl::StatusCode::kDeadlineExceeded && !stop_.stop_requested()) {
    grpc::ClientContext context;
    const std::stop_callback on_stop(stop_, [&context] { context.TryCancel(); });
    context.set_deadline(std::chrono::system_clock::now() + kAskWhy);
    v1::DescribeResponse response;
    const grpc::Status why = connection_->stub->Describe(&context, {}, &response);
    if (why.error_code() == grpc::StatusCode::UNAVAILABLE) {
      status = absl::DeadlineExceededError(why.error_message());
    }
  }
  return WithContext(status, address_);
}

absl::Status ShardClient::WatchLoad(Deadline deadline) {
  grpc::ClientContext context;
  const std::stop_callback on_stop(stop_, [&context] { context.TryCancel(); });
  context.set_deadline(deadline);
  const auto reader = connection_->stub->WatchLoad(&context, {});
  std::string error;
  for (v1::LoadProgress wire; reader->Read(&wire);) {
    if (!wire.error().empty()) error = wire.error();
  }
  const grpc::Status status = reader->Finish();
  if (!error.empty()) return WithRank(absl::FailedPreconditionError(error), "loading");
  return WithRank(FromGrpc(status), "WatchLoad");
}

absl::Status ShardClient::Configure(v1::ConfigureRequest request, Deadline deadline) {
  grpc::ClientContext context;
  const std::stop_callback on_stop(stop_, [&context] { context.TryCancel(); });
  context.set_deadline(deadline);
  request.set_rank(rank_);
  v1::ConfigureResponse response;
  return WithRank(FromGrpc(connection_->stub->Configure(&context, request, &response)),
                  "Configure");
}

absl::StatusOr<ShardWarmup> ShardClient::Warmup(Epoch epoch, Deadline deadline) {
  grpc::ClientContext context;
  const std::stop_callback on_stop(stop_, [&context] { context.TryCancel(); });
  context.set_deadline(deadline);
  v1::WarmupRequest request;
  request.set_epoch(epoch.value());
  v1::WarmupResponse response;
  const grpc::Status status = connection_->stub->Warmup(&context, request, &response);
  if (!status.ok()) return WithRank(FromGrpc(status), "Warmup");
  ShardWarmup warmup;
  warmup.pool.blocks.assign(response.blocks().begin(), response.blocks().end());
  warmup.pool.cells = response.cells();
  warmup.pool.snapshots = response.snapshots();
  for (const v1::StepTime& time : response.step_times()) {
    warmup.calibration.samples.push_back({time.prefill_tokens(), time.decode_rows(),
                                          time.context_tokens(), Duration(time.nanoseconds())});
  }
  return warmup;
}

absl::StatusOr<std::uint64_t> ShardClient::Commit(Epoch epoch, const ShardPool& pool,
                                                  Deadline deadline) {
  grpc::ClientContext context;
  const std::stop_callback on_stop(stop_, [&context] { context.TryCancel(); });
  context.set_deadline(deadline);
  v1::CommitRequest request;
  request.set_epoch(epoch.value());
  request.mutable_blocks()->Add(pool.blocks.begin(), pool.blocks.end());
  request.set_cells(pool.cells);
  request.set_snapshots(pool.snapshots);
  v1::CommitResponse response;
  PENSTOCK_RETURN_IF_ERROR(
      WithRank(FromGrpc(connection_->stub->Commit(&context, request, &response)), "Commit"));
  PENSTOCK_RETURN_IF_ERROR(WithRank(ConnectForExecute(deadline), "Commit"));
  return response.kv_cache_bytes();
}

absl::StatusOr<Vectors> ShardClient::Embed(Epoch epoch, std::span<const EmbedText> texts,
                                           Deadline deadline) {
  grpc::ClientContext context;
  const std::stop_callback on_stop(stop_, [&context] { context.TryCancel(); });
  context.set_deadline(deadline);
  v1::EmbedRequest request;
  request.set_epoch(epoch.value());
  for (const EmbedText& text : texts) {
    v1::EmbedText& wire = *request.add_texts();
    wire.mutable_tokens()->Add(text.tokens.begin(), text.tokens.end());
    if (text.first_part < text.tokens.size()) wire.set_first_part(text.first_part);
  }
  v1::EmbedResponse response;
  const grpc::Status status = connection_->stub->Embed(&context, request, &response);
  if (!status.ok()) return WithRank(FromGrpc(status), "Embed");
  Vectors vectors;
  for (const v1::EmbedVector& wire : response.vectors()) {
    vectors.emplace_back(wire.values().begin(), wire.values().end());
  }
  return vectors;
}

absl::StatusOr<ShardAdapter> ShardClient::LoadAdapter(const std::string& id,
                                                      const std::string& folder,
                                                      Deadline deadline) {
  grpc::ClientContext context;
  const std::stop_callback on_stop(stop_, [&context] { context.TryCancel(); });
  context.set_deadline(deadline);
  v1::LoadAdapterRequest request;
  request.set_id(id);
  request.set_folder(folder);
  v1::LoadAdapterResponse response;
  const grpc::Status status = connection_->stub->LoadAdapter(&context, request, &response);
  if (status.ok()) return FromWire(response.adapter());
  const bool unreachable = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                           status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  return unreachable ? WithRank(FromGrpc(status), "LoadAdapter") : FromGrpc(status);
}

absl::Status ShardClient::UnloadAdapter(const std::string& id, Deadline deadline) {
  grpc::ClientContext context;
  const std::stop_callback on_stop(stop_, [&context] { context.TryCancel(); });
  context.set_deadline(deadline);
  v1::UnloadAdapterRequest request;
  request.set_id(id);
  v1::UnloadAdapterResponse response;
  return WithRank(FromGrpc(connection_->stub->UnloadAdapter(&context, request, &response)),
                  "UnloadAdapter");
}

// gRPC sends pings while a call is open, and Execute is open while the group is up. So on a Unix
// socket Execute gets a connection without pings, which is silent while the group is idle.
absl::Status ShardClient::ConnectForExecute(Deadline deadline) {
  if (on_tcp() || silence_.count() <= 0) return absl::OkStatus();
  auto connection = std::make_unique<Connection>(address_, nullptr, std::chrono::milliseconds(0));
  const Deadline patience = std::chrono::system_clock::now() + silence_;
  if (!connection->channel->WaitForConnected(std::min(deadline, patience))) {
    return absl::UnavailableError(address_ + " did not accept a second connection within " +
                                  std::to_string(silence_.count()) + " ms (--rank-timeout)");
  }
  connection_ = std::move(connection);
  return absl::OkStatus();
}

void ShardClient::PrepareExecute(ExecuteListener* listener, std::shared_ptr<ExecuteQueue> queue) {
  stream_ = std::make_unique<Stream>(*connection_->stub, rank_, listener, std::move(queue));
}

void ShardClient::StartExecute() { stream_->Start(); }
void ShardClient::Send(const StepPlan& plan) { stream_->Send(plan); }

// Over TCP the keepalive finds a machine that has failed.
void ShardClient::CheckAlive(std::chrono::milliseconds within) {
  if (!on_tcp()) stream_->CheckAlive(within);
}

bool ShardClient::on_tcp() const { return address_.starts_with(kTcp); }

void ShardClient::CloseExecute(std::chrono::milliseconds grace) {
  if (stream_ != nullptr) stream_->Close(grace);
}

void ShardClient::AbortExecute() {
  if (stream_ != nullptr) stream_->Abort();
}

}  // namespace penstock::router
