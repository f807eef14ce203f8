#include "tools/bench/runner.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/http.hpp>
#include <deque>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "common/status.h"
#include "tools/bench/progress_bar.h"
#include "tools/bench/request_body.h"
#include "tools/bench/server_stream.h"
#include "tools/bench/sse_reader.h"

namespace penstock::bench {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);

// utime + stime of a process; 0 when it is gone.
double CpuSeconds(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(end_of_name + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

constexpr std::string_view kUnauthorized = "status 401";

bool IsUnauthorized(const RequestRecord& record) { return record.error.starts_with(kUnauthorized); }

absl::Status NeedsKey() {
  return absl::PermissionDeniedError(
      "the server refuses the API key, or there is none (status 401); --api-key gives one");
}

double CpuSeconds(const std::vector<int>& pids) {
  double sum = 0;
  for (int pid : pids) sum += CpuSeconds(pid);
  return sum;
}

class Load {
 public:
  explicit Load(const LoadOptions& config) : config_(config), random_(config.seed), timer_(io_) {}

  absl::StatusOr<RunReport> Run() {
    ErrorCode error;
    tcp::resolver resolver(io_);
    const ServerUrl& server = config_.server;
    const auto found = resolver.resolve(server.host, std::to_string(server.port), error);
    if (error || found.empty()) return absl::UnavailableError("url: " + error.message());
    endpoint_ = found.begin()->endpoint();
    PENSTOCK_ASSIGN_OR_RETURN(tls_, MakeTlsContext(server, config_.trust));
    PENSTOCK_RETURN_IF_ERROR(FirstConnection());
    if (config_.api != Api::kTgi && config_.model.empty()) {
      const absl::Status named = AskModel();
      if (!named.ok()) return named;
    }
    if (config_.warmup > 0) RunPhase(config_.warmup);
    const double cpu = CpuSeconds(config_.server_pids);
    const auto begin = Clock::now();
    RunPhase(config_.requests);
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    if (std::ranges::all_of(records_, IsUnauthorized)) return NeedsKey();
    return MakeReport(records_, seconds.count(), CpuSeconds(config_.server_pids) - cpu);
  }

 private:
  // Whether a server is there. The first request takes the connection.
  absl::Status FirstConnection() {
    auto stream = std::make_unique<ServerStream>(io_, tls_, config_.server.host);
    ErrorCode error;
    const auto connect = [&]() -> asio::awaitable<void> {
      error = co_await stream->Connect(endpoint_, config_.timeout);
    };
    asio::co_spawn(io_, connect, asio::detached);
    io_.run();
    io_.restart();
    if (error) {
      const bool refused = error == asio::error::connection_refused;
      return absl::UnavailableError(
          config_.server.Address() + ": " + ErrorText(error) +
          (refused ? "; is a server running there? --url names another" : ""));
    }
    idle_.push_back(std::move(stream));
    return absl::OkStatus();
  }

  // Sets the model to the first that the server names.
  absl::Status AskModel() {
    ServerStream::Parser parser;
    ErrorCode error;
    asio::co_spawn(io_, FetchModels(parser, error), asio::detached);
    io_.run();
    if (error) return absl::UnavailableError("GET /v1/models: " + ErrorText(error));
    const auto& response = parser.get();
    if (response.result() == http::status::unauthorized) return NeedsKey();
    const std::optional<std::string> model = FirstModel(response.body());
    if (response.result() != http::status::ok || !model) {
      return absl::UnavailableError("GET /v1/models: status " +
                                    std::to_string(response.result_int()) +
                                    ": it names no model; give --model");
    }
    config_.model = *model;
    return absl::OkStatus();
  }

  asio::awaitable<void> FetchModels(ServerStream::Parser& parser, ErrorCode& error) {
    ServerStream::Request request(http::verb::get, "/v1/models", 11);
    SetHeaders(request);
    ServerStream stream(io_, tls_, config_.server.host);
    error = co_await stream.Connect(endpoint_, config_.timeout);
    if (!error) error = co_await stream.Write(request);
    if (!error) error = co_await stream.ReadHead(parser);
    while (!error && !parser.is_done()) error = co_await stream.ReadSome(parser);
  }

  void RunPhase(std::uint32_t requests) {
    records_.clear();
    records_.reserve(requests);
    left_ = requests;
    progress_ = ProgressBar(config_.progress, requests);
    io_.restart();
    if (config_.rate > 0) {
      asio::co_spawn(io_, Arrivals(), asio::detached);
    } else {
      for (std::uint32_t i = 0; i < std::min(config_.concurrency, requests); ++i) {
        asio::co_spawn(io_, Worker(), asio::detached);
      }
    }
    io_.run();
    progress_.End();
  }

  // Closed loop: one request after the other.
  asio::awaitable<void> Worker() {
    while (left_ > 0) {
      --left_;
      co_await OneRequest(Clock::now());
    }
  }

  // Open loop. An arrival beyond `concurrency` waits for a free place; its latency counts from
  // here.
  asio::awaitable<void> Arrivals() {
    std::exponential_distribution<double> gap(config_.rate);
    auto when = Clock::now();
    while (left_ > 0) {
      --left_;
      timer_.expires_at(when);
      co_await timer_.async_wait(kNoThrow);
      waiting_.push_back(when);
      StartWaiting();
      when +=
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(gap(random_)));
    }
  }

  void StartWaiting() {
    while (!waiting_.empty() && in_flight_ < config_.concurrency) {
      ++in_flight_;
      asio::co_spawn(io_, OpenRequest(waiting_.front()), asio::detached);
      waiting_.pop_front();
    }
  }

  asio::awaitable<void> OpenRequest(Clock::time_point arrival) {
    co_await OneRequest(arrival);
    --in_flight_;
    StartWaiting();
  }

  asio::awaitable<void> OneRequest(Clock::time_point arrival) {
    RequestRecord record;
    record.arrival = arrival;
    auto connection = TakeConnection();
    const bool reusable = co_await Exchange(*connection, record);
    record.end = Clock::now();
    if (reusable) idle_.push_back(std::move(connection));
    if (record.tokens == 0) record.tokens = static_cast<std::uint32_t>(record.token_events.size());
    records_.push_back(std::move(record));
    progress_.Show(static_cast<std::uint32_t>(records_.size()));
  }

  std::unique_ptr<ServerStream> TakeConnection() {
    if (idle_.empty()) return std::make_unique<ServerStream>(io_, tls_, config_.server.host);
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }

  // Returns true if the connection may be used again.
  asio::awaitable<bool> Exchange(ServerStream& connection, RequestRecord& record) {
    if (connection.is_open()) {
      connection.ExpiresAfter(config_.timeout);
    } else {
      const ErrorCode error = co_await connection.Connect(endpoint_, config_.timeout);
      if (error) co_return Fail(record, "connect: " + ErrorText(error));
    }
    const ServerStream::Request request = MakeRequest();
    const ErrorCode error = co_await connection.Write(request);
    if (error) co_return Fail(record, "write: " + error.message());
    co_return co_await ReadStream(connection, record);
  }

  asio::awaitable<bool> ReadStream(ServerStream& connection, RequestRecord& record) {
    ServerStream::Parser parser;
    parser.body_limit(boost::none);
    const ErrorCode head_error = co_await connection.ReadHead(parser);
    if (head_error) co_return Fail(record, "read: " + head_error.message());
    SseReader reader;
    const bool streaming = parser.get().result() == http::status::ok;
    while (true) {
      std::string& body = parser.get().body();
      if (streaming) {
        reader.Feed(body, [&](std::string_view payload) { OnEvent(payload, record); });
        body.clear();
      }
      if (parser.is_done()) break;
      const ErrorCode error = co_await connection.ReadSome(parser);
      if (error) co_return Fail(record, "stream: " + error.message());
    }
    if (!streaming) {
      const std::string& body = parser.get().body();
      record.error = "status " + std::to_string(parser.get().result_int()) +
                     (body.empty() ? " without a body" : ": " + body);
    }
    co_return parser.get().keep_alive();
  }

  void OnEvent(std::string_view payload, RequestRecord& record) {
    const StreamEvent event = ReadEvent(config_.api, payload);
    if (event.is_error) record.error = std::string(payload);
    if (event.is_token) record.token_events.push_back(Clock::now());
    if (event.total_tokens) record.tokens = *event.total_tokens;
  }

  bool Fail(RequestRecord& record, std::string text) {
    record.error = std::move(text);
    return false;
  }

  ServerStream::Request MakeRequest() {
    ServerStream::Request request(http::verb::post, Target(config_.api), 11);
    SetHeaders(request);
    request.set(http::field::content_type, "application/json");
    request.body() = RequestBody(config_, NextPrompt());
    request.prepare_payload();
    return request;
  }

  void SetHeaders(ServerStream::Request& request) const {
    request.set(http::field::host, config_.server.HostHeader());
    if (!config_.api_key.empty()) {
      request.set(http::field::authorization, "Bearer " + config_.api_key);
    }
  }

  std::string NextPrompt() {
    if (!config_.prompts.empty()) return config_.prompts[next_prompt_++ % config_.prompts.size()];
    static constexpr const char* kWords[] = {"river", "stone",  "little",  "the",  "a",     "jumps",
                                             "over",  "bright", "morning", "said", "house", "and"};
    std::string prompt;
    for (std::uint32_t i = 0; i < config_.prompt_words; ++i) {
      if (i > 0) prompt += ' ';
      prompt += kWords[random_() % std::size(kWords)];
    }
    return prompt;
  }

  LoadOptions config_;
  asio::io_context io_{1};
  std::mt19937_64 random_;
  asio::steady_timer timer_;
  tcp::endpoint endpoint_;
  TlsContext tls_;
  std::vector<std::unique_ptr<ServerStream>> idle_;
  std::deque<Clock::time_point> waiting_;  // bounded by the number of requests
  std::vector<RequestRecord> records_;
  std::uint32_t left_ = 0;
  ProgressBar progress_{false, 0};
  std::uint32_t in_flight_ = 0;
  std::size_t next_prompt_ = 0;
};

}  // namespace

absl::StatusOr<RunReport> Run(const LoadOptions& config) { return Load(config).Run(); }

}  // namespace penstock::bench
