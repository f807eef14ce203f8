#include "tools/bench/effective/client.h"

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <utility>

#include "tools/bench/progress_bar.h"

namespace penstock::bench::effective {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace json = boost::json;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// A server closes connections that are idle for about a minute.
constexpr auto kReuseWithin = std::chrono::seconds(20);

struct Connection {
  explicit Connection(asio::io_context& io) : stream(io) {}
  beast::tcp_stream stream;
  beast::flat_buffer buffer;
  Clock::time_point idle_since;
};

std::string Body(const TraceRequest& request, std::uint64_t intended_ms) {
  const json::object body = {{"prompt", request.prompt},
                             {"num_tokens", request.num_tokens},
                             {"seed", request.seed},
                             {"details", true},
                             {"intended_arrival_ms", intended_ms}};
  return json::serialize(body);
}

double Number(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

void ReadDetails(const std::string& body, Outcome& outcome) {
  ErrorCode error;
  const json::value value = json::parse(body, error);
  if (error || !value.is_object() || !value.as_object().contains("completion")) {
    outcome.error = "the answer has no `completion`";
    return;
  }
  const json::value* details = value.as_object().if_contains("details");
  if (details == nullptr || !details->is_object()) return;  // the original, say
  const json::object& object = details->as_object();
  outcome.request = static_cast<std::uint64_t>(Number(object, "request"));
  outcome.first_token = Number(object, "first_token_ms") / 1000;
  outcome.server_latency = Number(object, "total_ms") / 1000;
  const json::value* tokens = object.if_contains("tokens");
  if (tokens == nullptr || !tokens->is_array()) return;
  for (const json::value& token : tokens->as_array()) {
    if (token.is_number()) outcome.tokens.push_back(token.to_number<std::int64_t>());
  }
}

}  // namespace

std::string Description(const Answer& answer) {
  const std::string status = "status " + std::to_string(answer.status);
  return answer.body.empty() ? status + " without a body" : status + ": " + answer.body;
}

class Client::Impl {
 public:
  explicit Impl(Address address) : address_(std::move(address)) {}

  absl::Status Resolve() {
    if (endpoint_.port() != 0) return absl::OkStatus();
    ErrorCode error;
    tcp::resolver resolver(io_);
    const auto found = resolver.resolve(address_.host, std::to_string(address_.port), error);
    if (error || found.empty()) return absl::UnavailableError(Name() + ": " + error.message());
    endpoint_ = found.begin()->endpoint();
    return absl::OkStatus();
  }

  absl::StatusOr<Answer> Fetch(std::string_view method, std::string_view target,
                               const std::string& body) {
    if (const absl::Status found = Resolve(); !found.ok()) return found;
    Answer answer;
    std::string error;
    io_.restart();
    asio::co_spawn(io_, FetchOne(MakeRequest(method, target, body), answer, error), asio::detached);
    io_.run();
    if (!error.empty()) return absl::UnavailableError(Name() + ": " + error);
    return answer;
  }

  absl::StatusOr<TraceRun> Replay(const std::vector<TraceRequest>& trace) {
    if (const absl::Status found = Resolve(); !found.ok()) return found;
    TraceRun run;
    run.outcomes.resize(trace.size());
    io_.restart();
    std::fprintf(stderr, "%zu requests to %s; the last is sent after %.1f s\n", trace.size(),
                 Name().c_str(), trace.empty() ? 0.0 : trace.back().arrival);
    answered_ = 0;
    progress_ = ProgressBar(true, static_cast<std::uint32_t>(trace.size()));
    const Clock::time_point begin = Clock::now();
    const auto date = std::chrono::system_clock::now();
    Clock::time_point last = begin;
    for (std::size_t i = 0; i < trace.size(); ++i) {
      asio::co_spawn(io_, OneRequest(trace[i], begin, date, run.outcomes[i], last), asio::detached);
    }
    io_.run();
    progress_.End();
    run.seconds = Seconds(last - begin);
    return run;
  }

 private:
  using Request = http::request<http::string_body>;

  std::string Name() const { return address_.host + ":" + std::to_string(address_.port); }

  Request MakeRequest(std::string_view method, std::string_view target, const std::string& body) {
    Request request(http::string_to_verb(method), target, 11);
    request.set(http::field::host, Name());
    request.set(http::field::content_type, "application/json");
    if (!address_.api_key.empty()) {
      request.set(http::field::authorization, "Bearer " + address_.api_key);
    }
    request.body() = body;
    request.prepare_payload();
    return request;
  }

  asio::awaitable<void> FetchOne(Request request, Answer& answer, std::string& error) {
    co_await Exchange(std::move(request), answer, error);
  }

  asio::awaitable<void> OneRequest(const TraceRequest& request, Clock::time_point begin,
                                   std::chrono::system_clock::time_point date, Outcome& outcome,
                                   Clock::time_point& last) {
    const std::chrono::duration<double> offset(request.arrival);
    const Clock::time_point arrival = begin + std::chrono::duration_cast<Clock::duration>(offset);
    const auto intended = date + std::chrono::duration_cast<std::chrono::milliseconds>(offset);
    asio::steady_timer timer(io_, arrival);
    co_await timer.async_wait(kNoThrow);
    const auto intended_ms = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(intended.time_since_epoch()).count());
    const Clock::time_point sent = Clock::now();
    Answer answer;
    Request message = MakeRequest("POST", "/inference", Body(request, intended_ms));
    co_await Exchange(std::move(message), answer, outcome.error);
    last = Clock::now();
    progress_.Show(++answered_);
    outcome.num_tokens = request.num_tokens;
    outcome.latency = Seconds(last - arrival);
    if (!outcome.error.empty()) co_return;
    if (answer.status != 200) {
      outcome.error = Description(answer);
      co_return;
    }
    outcome.server_latency = outcome.first_token = Seconds(last - sent);
    ReadDetails(answer.body, outcome);
    outcome.first_token += Seconds(sent - arrival);
  }

  asio::awaitable<void> Exchange(Request request, Answer& answer, std::string& error) {
    auto connection = TakeConnection();
    beast::tcp_stream& stream = connection->stream;
    stream.expires_after(address_.timeout);
    if (!stream.socket().is_open()) {
      auto [failed] = co_await stream.async_connect(endpoint_, kNoThrow);
      if (failed) {
        error = "connect: " + failed.message();
        co_return;
      }
      stream.socket().set_option(tcp::no_delay(true));
    }
    auto [not_sent, sent] = co_await http::async_write(stream, request, kNoThrow);
    if (not_sent) {
      error = "write: " + not_sent.message();
      co_return;
    }
    http::response_parser<http::string_body> parser;
    parser.body_limit(boost::none);
    auto [not_read, read] = co_await http::async_read(stream, connection->buffer, parser, kNoThrow);
    if (not_read) {
      error = "read: " + not_read.message();
      co_return;
    }
    answer.status = static_cast<int>(parser.get().result_int());
    answer.body = std::move(parser.get().body());
    stream.expires_never();
    connection->idle_since = Clock::now();
    if (parser.get().keep_alive()) idle_.push_back(std::move(connection));
  }

  // The most recently used first.
  std::unique_ptr<Connection> TakeConnection() {
    if (!idle_.empty() && Clock::now() - idle_.back()->idle_since > kReuseWithin) idle_.clear();
    if (idle_.empty()) return std::make_unique<Connection>(io_);
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }

  const Address address_;
  asio::io_context io_{1};
  tcp::endpoint endpoint_;
  std::vector<std::unique_ptr<Connection>> idle_;
  std::uint32_t answered_ = 0;
  ProgressBar progress_{false, 0};
};

Client::Client(Address address) : impl_(std::make_unique<Impl>(std::move(address))) {}
Client::~Client() = default;

absl::StatusOr<Answer> Client::Fetch(std::string_view method, std::string_view target,
                                     const std::string& body) {
  return impl_->Fetch(method, target, body);
}

absl::StatusOr<TraceRun> Client::Replay(const std::vector<TraceRequest>& trace) {
  return impl_->Replay(trace);
}

}  // namespace penstock::bench::effective
