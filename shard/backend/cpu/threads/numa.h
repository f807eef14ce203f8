// Where the threads of a pool compute on a machine with several NUMA nodes: spread over the nodes
// in proportion to their CPUs, each kept on its node's CPUs (not on one of them), so that memory
// which a thread touches first stays near it. What the process was confined to (taskset, numactl, a
// cpuset) holds: other CPUs are never used, and on one node nobody is kept anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::shard::cpu {

struct NumaNode {
  std::uint32_t id = 0;
  std::vector<std::uint32_t> cpus;  // ascending
  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

// Of the nodes below `root` ("/sys" in production) those that have some of these CPUs, with no
// others, ascending. Empty where the kernel does not say.
std::vector<NumaNode> ReadNodes(const std::string& root, const std::vector<std::uint32_t>& cpus);

// CPUs that the calling thread may use, ascending; empty if the kernel does not say.
std::vector<std::uint32_t> CpusOfThisThread();
// False, and nothing changes, if it may not use any of them.
bool KeepThisThreadOn(const std::vector<std::uint32_t>& cpus);

// "0-2,5", as the kernel writes lists; malformed parts are left out.
std::vector<std::uint32_t> ParseCpuList(const std::string& text);

// One of several pools of a machine that divide it.
struct PoolPart {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
};

struct Placement {
  std::vector<NumaNode> nodes;           // those with threads
  std::vector<std::uint32_t> of_thread;  // index of its node, ascending; empty: threads are free

  std::size_t NodeCount() const { return nodes.empty() ? 1 : nodes.size(); }
  std::uint32_t NodeOf(std::size_t thread) const {
    return of_thread.empty() ? 0 : of_thread[thread];
  }
  // "threads on NUMA nodes: 16 on 0, 16 on 1"; empty where they are free.
  std::string Describe() const;
};

// Threads are free where there are fewer than two nodes.
Placement PlaceThreads(const std::vector<NumaNode>& nodes, std::uint32_t threads, PoolPart part);

}  // namespace penstock::shard::cpu
