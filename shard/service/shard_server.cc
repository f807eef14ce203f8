#include "shard/service/shard_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "shard/service/socket_path.h"

namespace penstock::shard {
namespace {

// How long calls that are open at Stop may take to end, for example with the last progress of
// WatchLoad. Then they are cancelled.
constexpr std::chrono::milliseconds kStopGrace{500};

// A plan has the prompts that start in its step: 16 MiB more than the default of --payload-limit.
constexpr int kMaxReceiveBytes = 32 << 20;
constexpr int kMaxSendBytes = 64 << 20;

constexpr const char* kServiceName = "penstock.v1.Shard";

}  // namespace

ShardServer::ShardServer(std::unique_ptr<RankEngine> engine, ShardServerOptions options)
    : engine_(std::move(engine)),
      options_(std::move(options)),
      state_(*engine_),
      service_(state_),
      health_names_{kServiceName} {}

ShardServer::~ShardServer() { Stop(); }

absl::StatusOr<std::unique_ptr<ShardServer>> ShardServer::Start(std::unique_ptr<RankEngine> engine,
                                                                ShardServerOptions options) {
  std::unique_ptr<ShardServer> server(new ShardServer(std::move(engine), std::move(options)));
  PENSTOCK_RETURN_IF_ERROR(server->Listen());
  server->state_.thread.Post([raw = server.get()] { raw->Load(); });
  return server;
}

void ShardServer::Stop() {
  if (stopped_) return;
  stopped_ = true;
  engine_->Interrupt();
  RemoveSocket();
  if (second_ != nullptr) second_->Stop();
  if (server_ != nullptr) {
    server_->GetHealthCheckService()->Shutdown();
    server_->Shutdown(std::chrono::system_clock::now() + kStopGrace);
  }
  state_.adapter_reader.Stop();
  state_.thread.Stop();
  server_.reset();
}

// First of all, so that the socket is gone even if the process ends before the model thread.
void ShardServer::RemoveSocket() {
  if (server_ == nullptr || on_tcp()) return;
  unlink(address_.c_str());
  // Fails while the socket of another rank is in the directory, as it should.
  if (made_directory_) rmdir(address_.substr(0, address_.rfind('/')).c_str());
}

// On TCP only clients with a certificate of the authority may connect.
std::shared_ptr<grpc::ServerCredentials> ShardServer::Credentials() const {
  if (!on_tcp()) return grpc::InsecureServerCredentials();
  const TlsIdentity& tls = *options_.listen.tls;
  grpc::SslServerCredentialsOptions ssl(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  ssl.pem_root_certs = tls.authority;
  ssl.pem_key_cert_pairs.push_back({tls.key, tls.certificate});
  return grpc::SslServerCredentials(ssl);
}

absl::Status ShardServer::Listen() {
  if (on_tcp()) {
    address_ = options_.listen.tcp;
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(address_,
                              SocketPath(options_.listen.socket_prefix, state_.Facts().rank()));
    PENSTOCK_RETURN_IF_ERROR(PrepareSocketPath(address_, made_directory_));
  }
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  // Without this a second shard on the same port would get some of its connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Allows the router to send keepalive pings as often as it wants.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  int port = 0;
  builder.AddListeningPort(on_tcp() ? address_ : "unix:" + address_, Credentials(), &port);
  builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  builder.SetMaxSendMessageSize(kMaxSendBytes);
  builder.RegisterService(&service_);
  if (options_.second_driver) second_ = options_.second_driver(state_, options_.listen);
  if (second_ != nullptr) {
    for (const SecondDriver::NamedService& named : second_->Services()) {
      builder.RegisterService(named.service);
      if (!named.name.empty()) health_names_.push_back(named.name);
    }
  }
  // Reflection and the barrier of generate.v3 are on the synchronous API. One polling thread
  // without a timeout is enough for them.
  using Option = grpc::ServerBuilder::SyncServerOption;
  builder.SetSyncServerOption(Option::NUM_CQS, 1);
  builder.SetSyncServerOption(Option::MAX_POLLERS, 1);
  builder.SetSyncServerOption(Option::CQ_TIMEOUT_MSEC, INT_MAX);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    return absl::UnavailableError("cannot listen on " + address_);
  }
  SetHealth(false);
  if (!on_tcp() && chmod(address_.c_str(), 0600) != 0) {
    return absl::UnavailableError("cannot set the mode of " + address_);
  }
  return absl::OkStatus();
}

void ShardServer::SetHealth(bool serving) {
  for (const std::string& name : health_names_) {
    server_->GetHealthCheckService()->SetServingStatus(name, serving);
  }
}

// Model thread.
void ShardServer::Load() {
  v1::LoadProgress last;
  const absl::Status status = engine_->Load([this, &last](const v1::LoadProgress& progress) {
    last = progress;
    state_.load.Publish(last);
    options_.on_progress(progress);
  });
  last.set_done(true);
  if (status.ok()) {
    state_.Loaded();
    SetHealth(true);
  } else {
    last.set_error(Message(status));
  }
  state_.load.Publish(last);
  options_.on_loaded(status);
}

}  // namespace penstock::shard
