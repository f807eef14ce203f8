// The upper bound of the router's memory, as a sum of its terms. It is printed at start;
// tests/bench/soak.py checks it. docs/operations.md explains each term.
#pragma once

#include <cstdint>
#include <string>

#include "common/free_memory.h"
#include "router/http/options.h"

namespace penstock::router {

// Bounds that are not in HttpOptions.
struct MemoryTerms {
  std::uint64_t resident = 0;          // bytes that the process holds before the first request
  std::uint32_t requests = 0;          // running and waiting at the same time
  std::uint32_t max_total_tokens = 0;  // of one request
  std::uint32_t text_threads = 0;
  std::uint64_t cache_blocks = 0;  // of all groups: each may have a node in the prefix index
  MemoryLimit limit;               // of this process; 0: not known
};

// Lowers the numbers of connections and of bytes of bodies where the process may take little: of
// `limit` the connections take a quarter, and the bodies three eighths. 128 connections and one
// body are always allowed.
void FitMemory(HttpOptions& http, const MemoryLimit& limit);

struct MemoryBound {
  std::uint64_t resident = 0;     // at start; a part of base
  std::uint64_t base = 0;         // resident at start, metrics, records, heap that is not returned
  std::uint64_t connections = 0;  // heads, pipelined bytes, what clients have not taken
  std::uint64_t bodies = 0;       // as received, as JSON values, as prompts
  std::uint64_t requests = 0;     // tokens with their texts and log-probabilities
  std::uint64_t tokenizing = 0;   // one body on each text thread
  std::uint64_t index = 0;        // prefix cache
  MemoryLimit limit;              // what it is compared with

  std::uint64_t total() const {
    return base + connections + bodies + requests + tokenizing + index;
  }
  // "80.0 MiB now; at most 4.1 GiB if every limit is reached at once. … The process may take 23.4
  // GiB (limit: the machine's memory). The largest part, bodies, is set by …"
  std::string Describe() const;
  // "the bound of 4.1 GiB is above …" if somebody set a lower limit; else empty.
  std::string Warning() const;
  // "base 114.0 MiB + connections 2.7 GiB + …"
  std::string DescribeTerms() const;
};

MemoryBound BoundMemory(const HttpOptions& http, const MemoryTerms& terms);

}  // namespace penstock::router
