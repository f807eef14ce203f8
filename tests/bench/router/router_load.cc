// Load for the router alone, with little work per event, so that one core of load keeps one core of
// router busy. Keeps `streams` requests open, each on its own connection, until `requests` are
// answered. Answers are searched for the ends of events and not parsed.
//
//   router_load HOST PORT STREAMS REQUESTS TOKENS stream|plain   ->  one line of JSON
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/usage.h"

namespace {

struct Client {
  int socket = -1;
  std::string tail;  // the last bytes seen: an end may come in two reads
};

struct Totals {
  std::uint64_t answered = 0;
  std::uint64_t events = 0;
  std::uint64_t reads = 0;
  std::uint64_t bytes = 0;
};

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "router_load: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

std::string Request(const std::string& host, int tokens, bool stream) {
  const std::string body =
      "{\"inputs\":\"river stone little the bright morning\",\"parameters\":{\"max_new_tokens\":" +
      std::to_string(tokens) + "}}";
  return std::string("POST /generate") + (stream ? "_stream" : "") + " HTTP/1.1\r\nhost: " + host +
         "\r\ncontent-type: application/json\r\ncontent-length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

int Connect(const std::string& host, int port) {
  const int made = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  if (::connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    Die("connect");
  }
  const int on = 1;
  ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return made;
}

void Send(int socket, const std::string& request) {
  if (::send(socket, request.data(), request.size(), 0) != static_cast<ssize_t>(request.size())) {
    Die("send");
  }
}

std::uint64_t Count(std::string_view text, std::string_view piece) {
  std::uint64_t count = 0;
  for (std::size_t at = text.find(piece); at != text.npos; at = text.find(piece, at + 1)) ++count;
  return count;
}

// True when the answer is complete. An unstreamed answer arrives whole, as it is one small write.
bool Scan(Client& client, std::string_view data, bool stream, Totals& totals) {
  if (!stream) {
    if (!data.starts_with("HTTP/1.1 200")) Die("an answer that is not 200");
    ++totals.events;
    return true;
  }
  const std::string seen = client.tail + std::string(data);
  totals.events += Count(seen, "}\n\n") - Count(client.tail, "}\n\n");
  client.tail = seen.substr(seen.size() - std::min<std::size_t>(seen.size(), 8));
  if (seen.find("\"error\"") != seen.npos) Die("an answer with an error");
  if (!std::string_view(seen).ends_with("0\r\n\r\n")) return false;
  client.tail.clear();
  return true;
}

class Load {
 public:
  Load(const std::string& host, int port, std::size_t streams, std::string request, bool stream)
      : request_(std::move(request)), stream_(stream), epoll_(::epoll_create1(0)) {
    for (std::size_t i = 0; i < streams; ++i) {
      clients_.push_back({Connect(host, port), ""});
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = i;
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, clients_.back().socket, &event);
    }
  }

  Totals Run(std::uint64_t requests) {
    std::uint64_t open = 0;
    for (Client& client : clients_) {
      if (open == requests) break;
      Send(client.socket, request_);
      ++open;
    }
    std::uint64_t left = requests - open;
    Totals totals;
    std::array<epoll_event, 256> ready;
    while (totals.answered < requests) {
      const int count = ::epoll_wait(epoll_, ready.data(), ready.size(), 30'000);
      if (count <= 0) Die("nothing came for 30 s");
      for (int i = 0; i < count; ++i) {
        Client& client = clients_[ready[static_cast<std::size_t>(i)].data.u64];
        if (!Read(client, totals)) continue;
        ++totals.answered;
        if (left == 0) continue;
        --left;
        Send(client.socket, request_);
      }
    }
    return totals;
  }

 private:
  bool Read(Client& client, Totals& totals) {
    const ssize_t size = ::recv(client.socket, buffer_.data(), buffer_.size(), 0);
    if (size <= 0) Die("recv");
    ++totals.reads;
    totals.bytes += static_cast<std::uint64_t>(size);
    return Scan(client, {buffer_.data(), static_cast<std::size_t>(size)}, stream_, totals);
  }

  const std::string request_;
  const bool stream_;
  const int epoll_;
  std::vector<Client> clients_;
  std::array<char, 65536> buffer_;
};

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kUsage =
      "Usage: router-load HOST PORT STREAMS REQUESTS TOKENS stream|plain\n\n"
      "Keeps STREAMS requests open until REQUESTS are answered, and prints one line of JSON.\n";
  if (const auto exit = penstock::bench::ExitOfArguments(argc, argv, kUsage)) return *exit;
  if (argc != 7) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const int port = penstock::bench::NumberArgument<std::uint16_t>("PORT", argv[2]);
  const auto streams = penstock::bench::NumberArgument<std::size_t>("STREAMS", argv[3]);
  const auto requests = penstock::bench::NumberArgument<std::uint64_t>("REQUESTS", argv[4]);
  const bool stream = std::string_view(argv[6]) == "stream";
  const int tokens = penstock::bench::NumberArgument<int>("TOKENS", argv[5]);
  Load load(argv[1], port, streams, Request(argv[1], tokens, stream), stream);
  const auto begin = std::chrono::steady_clock::now();
  const Totals totals = load.Run(requests);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf(
      "{\"seconds\":%.6f,\"requests\":%llu,\"events\":%llu,\"reads\":%llu,\"bytes\":%llu}\n",
      seconds.count(), static_cast<unsigned long long>(totals.answered),
      static_cast<unsigned long long>(totals.events), static_cast<unsigned long long>(totals.reads),
      static_cast<unsigned long long>(totals.bytes));
  return 0;
}
