#include "shard/backend/cpu/threads/numa.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

namespace penstock::shard::cpu {
namespace {

constexpr std::uint32_t kMostCpus = 8192;  // the most that Linux is built for

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// A set with room for kMostCpus; cpu_set_t has 1024.
class CpuSet {
 public:
  CpuSet() : words_(kMostCpus / (8 * sizeof(cpu_set_t)) + 1) {}
  std::size_t bytes() const { return words_.size() * sizeof(cpu_set_t); }
  cpu_set_t* data() { return words_.data(); }
  void Add(std::uint32_t cpu) { CPU_SET_S(cpu, bytes(), data()); }
  bool Has(std::uint32_t cpu) { return CPU_ISSET_S(cpu, bytes(), data()); }

 private:
  std::vector<cpu_set_t> words_;
};

}  // namespace

std::vector<std::uint32_t> ParseCpuList(const std::string& text) {
  std::vector<std::uint32_t> cpus;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const char* const end = part.data() + part.size();
    std::uint32_t first = 0;
    const auto [after, error] = std::from_chars(part.data(), end, first);
    std::uint32_t last = first;
    const bool range = error == std::errc() && after != end && *after == '-';
    const bool good =
        range ? std::from_chars(after + 1, end, last).ec == std::errc() : error == std::errc();
    if (!good || last >= kMostCpus) continue;
    for (std::uint32_t cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<NumaNode> ReadNodes(const std::string& root, const std::vector<std::uint32_t>& cpus) {
  const std::string folder = root + "/devices/system/node/";
  std::vector<NumaNode> nodes;
  for (const std::uint32_t id : ParseCpuList(FirstLine(folder + "online"))) {
    NumaNode node{id, {}};
    std::vector<std::uint32_t> all =
        ParseCpuList(FirstLine(folder + "node" + std::to_string(id) + "/cpulist"));
    std::sort(all.begin(), all.end());
    std::set_intersection(all.begin(), all.end(), cpus.begin(), cpus.end(),
                          std::back_inserter(node.cpus));
    if (!node.cpus.empty()) nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<std::uint32_t> CpusOfThisThread() {
  CpuSet set;
  std::vector<std::uint32_t> cpus;
  if (::sched_getaffinity(0, set.bytes(), set.data()) != 0) return cpus;
  for (std::uint32_t cpu = 0; cpu < kMostCpus; ++cpu) {
    if (set.Has(cpu)) cpus.push_back(cpu);
  }
  return cpus;
}

bool BindThisThreadTo(const std::vector<std::uint32_t>& cpus) {
  CpuSet set;
  for (const std::uint32_t cpu : cpus) set.Add(cpu);
  return ::sched_setaffinity(0, set.bytes(), set.data()) == 0;
}

std::string ThreadPlacement::Describe() const {
  std::string text;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    text += text.empty() ? "threads on NUMA nodes: " : ", ";
    text += std::to_string(std::count(of_thread.begin(), of_thread.end(), i)) + " on " +
            std::to_string(nodes[i].id);
  }
  return text;
}

ThreadPlacement PlaceThreads(const std::vector<NumaNode>& nodes, std::uint32_t threads,
                             PoolPart part) {
  ThreadPlacement placement;
  if (nodes.size() < 2) return placement;
  std::size_t cpus = 0;
  for (const NumaNode& node : nodes) cpus += node.cpus.size();
  const std::size_t all = std::size_t{part.count} * threads;
  std::size_t node = 0;
  std::size_t end = nodes[0].cpus.size();  // of this node's CPUs in the list of all
  for (std::size_t thread = 0; thread < threads; ++thread) {
    // The middle of the thread's share of the CPUs.
    const std::size_t twice = 2 * (std::size_t{part.index} * threads + thread) + 1;
    const std::size_t cpu = twice * cpus / (2 * all);
    while (cpu >= end) end += nodes[++node].cpus.size();
    if (placement.nodes.empty() || placement.nodes.back().id != nodes[node].id) {
      placement.nodes.push_back(nodes[node]);
    }
    placement.of_thread.push_back(static_cast<std::uint32_t>(placement.nodes.size() - 1));
  }
  return placement;
}

}  // namespace penstock::shard::cpu
