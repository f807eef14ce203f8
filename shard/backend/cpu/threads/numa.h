// Where the threads of a pool run on a machine with several NUMA nodes. They are spread over the
// nodes in proportion to the CPUs, and each is bound to all CPUs of its node, so that memory which
// a thread uses first stays near it. Limits of the process (taskset, numactl, a cpuset) hold. With
// one node no thread is bound.
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

// The nodes below `root` ("/sys" in production) that have some of `cpus`, each with only those,
// ascending. Empty if the kernel does not list nodes.
std::vector<NumaNode> ReadNodes(const std::string& root, const std::vector<std::uint32_t>& cpus);

// The CPUs that the calling thread may use, ascending; empty on an error.
std::vector<std::uint32_t> CpusOfThisThread();
// Binds the calling thread to these CPUs. False, without effect, if it may use none of them.
bool BindThisThreadTo(const std::vector<std::uint32_t>& cpus);

// Parses "0-2,5", the kernel's form of lists. Skips malformed parts.
std::vector<std::uint32_t> ParseCpuList(const std::string& text);

// One of several pools that divide a machine.
struct PoolPart {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
};

struct ThreadPlacement {
  std::vector<NumaNode> nodes;           // the nodes with threads
  std::vector<std::uint32_t> of_thread;  // index in `nodes`, ascending; empty: not bound

  std::size_t NodeCount() const { return nodes.empty() ? 1 : nodes.size(); }
  std::uint32_t NodeOf(std::size_t thread) const {
    return of_thread.empty() ? 0 : of_thread[thread];
  }
  // "threads on NUMA nodes: 16 on 0, 16 on 1"; empty if threads are not bound.
  std::string Describe() const;
};

// Empty with fewer than two nodes.
ThreadPlacement PlaceThreads(const std::vector<NumaNode>& nodes, std::uint32_t threads,
                             PoolPart part);

}  // namespace penstock::shard::cpu
