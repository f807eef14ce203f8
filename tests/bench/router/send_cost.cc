// The kernel's cost of an event: CPU time of one send() of SIZE bytes to each of SOCKETS loopback
// connections. A second process reads the other ends. No router that writes each event alone can
// spend less.
//
//   router-send-cost SOCKETS SIZE COUNT   ->  one line of JSON
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "tests/bench/usage.h"

namespace {

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "router-send-cost: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

double Microseconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

int Listen(sockaddr_in& address) {
  const int made = ::socket(AF_INET, SOCK_STREAM, 0);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* bare = reinterpret_cast<sockaddr*>(&address);
  if (::bind(made, bare, size) != 0 || ::listen(made, 1024) != 0) Die("listen");
  ::getsockname(made, bare, &size);
  return made;
}

// The other process: reads whatever comes until all connections are closed.
void ReadAll(const sockaddr_in& address, int sockets) {
  const int epoll = ::epoll_create1(0);
  for (int i = 0; i < sockets; ++i) {
    const int made = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      Die("connect");
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = made;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, made, &event);
  }
  std::vector<char> buffer(65536);
  std::array<epoll_event, 256> ready;
  while (sockets > 0) {
    const int count = ::epoll_wait(epoll, ready.data(), ready.size(), -1);
    for (int i = 0; i < count; ++i) {
      const int from = ready[static_cast<std::size_t>(i)].data.fd;
      if (::recv(from, buffer.data(), buffer.size(), 0) > 0) continue;
      ::close(from);
      --sockets;
    }
  }
}

std::vector<int> AcceptAll(int listener, int sockets) {
  std::vector<int> accepted;
  for (int i = 0; i < sockets; ++i) {
    accepted.push_back(::accept(listener, nullptr, nullptr));
    const int on = 1;
    ::setsockopt(accepted.back(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return accepted;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kUsage =
      "Usage: router-send-cost SOCKETS SIZE COUNT\n\n"
      "Prints the CPU time of one send() of SIZE bytes as JSON.\n";
  if (const auto exit = penstock::bench::ExitOfArguments(argc, argv, kUsage)) return *exit;
  if (argc != 4) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const int sockets = penstock::bench::NumberArgument<int>("SOCKETS", argv[1]);
  const auto size = penstock::bench::NumberArgument<std::size_t>("SIZE", argv[2]);
  const int count = penstock::bench::NumberArgument<int>("COUNT", argv[3]);
  sockaddr_in address{};
  const int listener = Listen(address);
  if (::fork() == 0) {
    ReadAll(address, sockets);
    ::_exit(0);
  }
  const std::vector<int> clients = AcceptAll(listener, sockets);
  const std::string event(size, 'x');
  const double cpu = Microseconds(CLOCK_PROCESS_CPUTIME_ID);
  const double wall = Microseconds(CLOCK_MONOTONIC);
  for (int i = 0; i < count; ++i) {
    const int to = clients[static_cast<std::size_t>(i % sockets)];
    if (::send(to, event.data(), event.size(), MSG_NOSIGNAL) < 0) Die("send");
  }
  std::printf("{\"sockets\":%d,\"bytes\":%zu,\"cpu_us\":%.3f,\"wall_us\":%.3f}\n", sockets,
              event.size(), (Microseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / count,
              (Microseconds(CLOCK_MONOTONIC) - wall) / count);
  for (const int client : clients) ::close(client);
  ::wait(nullptr);
  return 0;
}
