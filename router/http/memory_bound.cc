#include "router/http/memory_bound.h"

#include <algorithm>
#include <array>

#include "common/human_bytes.h"

namespace penstock::router {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// Metrics, records of requests, the log's queue, stacks, freed heap that stays.
constexpr std::uint64_t kOverhead = 64 * kMiB;
// Objects and coroutine frames of a connection, the parser, the chunk that is being read.
constexpr std::uint64_t kConnectionObjects = 96 << 10;
// OpenSSL's state of a connection, a record in each direction, what is shown in the handshake.
constexpr std::uint64_t kTlsObjects = 96 << 10;
// For a moment a body exists as bytes, as values and as a prompt.
constexpr std::uint64_t kBodyCopies = 3;
// A token with its id, text and log-probability, in the core, the text stream and the answer.
constexpr std::uint64_t kTokenBytes = 256;
constexpr std::uint64_t kRequestObjects = 32 << 10;
// What the tokenizer allocates for a byte of text: pieces, offsets, merges.
constexpr std::uint64_t kTokenizingBytes = 128;
constexpr std::uint64_t kNodeBytes = 512;
// Shares of what the process may take.
constexpr std::uint64_t kConnectionsShare = 4;
constexpr std::uint64_t kBodiesShare = 8;  // each exists kBodyCopies times
constexpr std::uint64_t kLeastConnections = 128;

struct Term {
  const char* name;
  std::uint64_t bytes;
  const char* set_by;
  const char* lowered_by = nullptr;  // an option
};

std::array<Term, 6> Terms(const MemoryBound& bound) {
  return {{{"base", bound.base, "the process itself"},
           {"connections", bound.connections, "the limit of connections"},
           {"bodies", bound.bodies,
            "the limit of bodies in memory: an eighth of that, at most 1 GiB, or --payload-limit"},
           {"requests", bound.requests, "--max-concurrent-requests", "--max-concurrent-requests"},
           {"tokenizing", bound.tokenizing, "--payload-limit and --validation-workers",
            "--payload-limit"},
           {"prefix index", bound.index, "--kv-cache-memory", "--kv-cache-memory"}}};
}

// Bytes that a client has not taken exist twice while they are framed.
std::uint64_t ConnectionBytes(const HttpOptions& http) {
  return http.limits.head_bytes + http.pipelined_bytes + 2 * http.stream_buffer +
         kConnectionObjects + (http.tls == nullptr ? 0 : kTlsObjects);
}

}  // namespace

void FitMemory(HttpOptions& http, const MemoryLimit& limit) {
  if (limit.bytes == 0) return;
  const std::uint64_t connections = limit.bytes / kConnectionsShare / ConnectionBytes(http);
  http.max_connections = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(http.max_connections, std::max(connections, kLeastConnections)));
  http.body_memory = std::min<std::size_t>(
      http.body_memory, std::max<std::size_t>(limit.bytes / kBodiesShare, http.limits.body_bytes));
}

MemoryBound BoundMemory(const HttpOptions& http, const MemoryTerms& terms) {
  MemoryBound bound;
  bound.resident = terms.resident;
  bound.base = terms.resident + terms.resident / 4 + kOverhead;
  bound.connections = http.max_connections * ConnectionBytes(http);
  bound.bodies = kBodyCopies * http.body_memory;
  bound.requests =
      terms.requests * (kRequestObjects + kTokenBytes * std::uint64_t{terms.max_total_tokens});
  bound.tokenizing = kTokenizingBytes * terms.text_threads * http.limits.body_bytes;
  bound.index = kNodeBytes * terms.cache_blocks;
  bound.limit = terms.limit;
  return bound;
}

std::string MemoryBound::Describe() const {
  const auto terms = Terms(*this);
  const Term& largest = *std::ranges::max_element(terms, {}, &Term::bytes);
  return HumanBytes(resident) + " now; at most " + HumanBytes(total()) +
         " if every limit is reached at once. Ordinary load does not reach them all. " +
         (limit.bytes == 0 ? ""
                           : "The process may take " + HumanBytes(limit.bytes) +
                                 " (limit: " + limit.name + "). ") +
         "The largest part, " + largest.name + ", is set by " + largest.set_by;
}

std::string MemoryBound::Warning() const {
  if (!limit.was_set || total() <= limit.bytes) return "";
  const auto terms = Terms(*this);
  const Term& largest = *std::ranges::max_element(
      terms, {}, [](const Term& term) { return term.lowered_by == nullptr ? 0 : term.bytes; });
  return "the bound of " + HumanBytes(total()) + " is above the " + HumanBytes(limit.bytes) +
         " that the process may take (limit: " + limit.name + "): lower " + largest.lowered_by +
         ", which sets " + HumanBytes(largest.bytes) + " of it, or raise the limit";
}

std::string MemoryBound::DescribeTerms() const {
  std::string sum;
  for (const Term& term : Terms(*this)) {
    sum += (sum.empty() ? "" : " + ") + std::string(term.name) + " " + HumanBytes(term.bytes);
  }
  return sum;
}

}  // namespace penstock::router
