#include "tools/bench/awscurl/load.h"

#include <boost/asio.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>

#include "common/status.h"
#include "tools/bench/awscurl/answer_text.h"
#include "tools/bench/server_stream.h"

namespace penstock::bench::awscurl {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

class Load {
 public:
  Load(const Options& options, const Counter& count) : options_(options), count_(count) {}

  absl::StatusOr<Result> Run() {
    boost::system::error_code error;
    const ServerUrl& server = options_.server;
    const auto found = tcp::resolver(io_).resolve(server.host, std::to_string(server.port), error);
    if (error || found.empty()) return absl::UnavailableError("URL: " + error.message());
    endpoint_ = found.begin()->endpoint();
    PENSTOCK_ASSIGN_OR_RETURN(tls_, MakeTlsContext(server, {.insecure = options_.insecure}));
    left_ = std::uint64_t{options_.clients} * options_.repeat;
    const auto begin = Clock::now();
    if (options_.duration.count() > 0) until_ = begin + options_.duration;
    for (std::uint32_t client = 0; client < options_.clients; ++client) {
      asio::co_spawn(io_, Client(client), asio::detached);
    }
    io_.run();
    return MakeResult(replies_, options_.clients, Milliseconds(Clock::now() - begin),
                      options_.tokenizer);
  }

 private:
  bool Draw() {
    if (until_ != Clock::time_point::max()) return Clock::now() < until_;
    return left_ > 0 && left_-- > 0;
  }

  asio::awaitable<void> Client(std::uint32_t number) {
    ServerStream stream(io_, tls_, options_.server.host);
    std::ofstream output;
    if (!options_.output.empty()) output.open(options_.output + "." + std::to_string(number));
    while (Draw()) {
      Reply reply;
      const auto begin = Clock::now();
      const bool reusable = co_await One(stream, begin, reply, output);
      reply.latency_ms = Milliseconds(Clock::now() - begin);
      if (!reusable) stream.Close();
      replies_.push_back(std::move(reply));
    }
  }

  // Returns true if the connection may be used again.
  asio::awaitable<bool> One(ServerStream& stream, Clock::time_point begin, Reply& reply,
                            std::ofstream& output) {
    if (stream.is_open()) {
      stream.ExpiresAfter(options_.timeout);
    } else {
      const auto error = co_await stream.Connect(endpoint_, options_.timeout);
      if (error) co_return Fail(reply, "connect: " + error.message());
    }
    const auto request = MakeRequest();
    const auto error = co_await stream.Write(request);
    if (error) co_return Fail(reply, "write: " + error.message());
    co_return co_await Read(stream, begin, reply, output);
  }

  asio::awaitable<bool> Read(ServerStream& stream, Clock::time_point begin, Reply& reply,
                             std::ofstream& output) {
    ServerStream::Parser parser;
    parser.body_limit(boost::none);
    const auto head_error = co_await stream.ReadHead(parser);
    if (head_error) co_return Fail(reply, "read: " + head_error.message());
    reply.first_byte_ms = Milliseconds(Clock::now() - begin);
    bool first = parser.get().body().empty();
    while (!parser.is_done()) {
      stream.ExpiresAfter(options_.timeout);
      const auto error = co_await stream.ReadSome(parser);
      if (error) co_return Fail(reply, "read: " + error.message());
      if (std::exchange(first, false)) reply.first_byte_ms = Milliseconds(Clock::now() - begin);
    }
    Finish(parser.get(), reply);
    if (output.is_open()) output << parser.get().body() << "\n";
    co_return parser.get().keep_alive();
  }

  void Finish(const http::response<http::string_body>& response, Reply& reply) const {
    if (response.result_int() >= 300) {
      Fail(reply, std::to_string(response.result_int()) + " " + response.body().substr(0, 160));
      return;
    }
    if (!options_.count_tokens) return;
    const auto type = response[http::field::content_type];
    const auto texts = AnswerTexts({type.data(), type.size()}, response.body());
    if (!texts) {
      Fail(reply, "the body is not what its type says");
      return;
    }
    for (const std::string& text : *texts) reply.tokens += count_(text);
  }

  static bool Fail(Reply& reply, std::string error) {
    reply.failed = true;
    reply.error = std::move(error);
    return false;
  }

  ServerStream::Request MakeRequest() {
    const ServerUrl& server = options_.server;
    ServerStream::Request request(http::string_to_verb(options_.method), server.target, 11);
    request.method_string(options_.method);
    request.set(http::field::host, server.HostHeader());
    for (const auto& [name, value] : options_.headers) request.set(name, value);
    request.body() = options_.bodies[next_body_++ % options_.bodies.size()];
    request.prepare_payload();
    return request;
  }

  const Options& options_;
  const Counter& count_;
  asio::io_context io_{1};
  tcp::endpoint endpoint_;
  TlsContext tls_;
  std::uint64_t left_ = 0;
  Clock::time_point until_ = Clock::time_point::max();
  std::size_t next_body_ = 0;
  std::vector<Reply> replies_;
};

}  // namespace

absl::StatusOr<Result> Run(const Options& options, const Counter& count) {
  return Load(options, count).Run();
}

}  // namespace penstock::bench::awscurl
