// The batches that generate.v3 keeps by id, and the four calls that change them. Knows no gRPC and
// no ranks. Allocation, stopping and text are deterministic. So every rank of a group reaches the
// same state if it makes the same calls in the same order. Only rank 0 reports Generations: one for
// each request and step.
//
// The rules are those of TGI's shard (docs/api/grpc.md has them all):
//   - A call takes the batches that it names and stores the result under the id of the first.
//   - Members that stopped are listed in the answer of that step and dropped by the next call. If
//     all have stopped, the answer has no batch.
//   - An invalid call (unknown id, bad field, no memory) changes nothing. But a Prefill first drops
//     a batch of the same id, and a refused Prefill drops its cached batch.
//   - If one request fails in a step, the batch of the call is dropped. An error of the engine ends
//     the group and the session.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "shard/tgi/batch_runner.h"
#include "shard/tgi/member.h"
#include "shard/tgi/request.h"
#include "text/tokenizer.h"

namespace generate::v3 {
class Batch;
class CachedBatch;
class DecodeRequest;
class DecodeResponse;
class FilterBatchRequest;
class FilterBatchResponse;
class Generation;
class PrefillRequest;
class PrefillResponse;
class Request;
}  // namespace generate::v3

namespace penstock::shard {

// The formed group.
struct TgiSessionOptions {
  bool reports = true;  // rank 0
  std::uint32_t slots = 0;
  std::uint32_t blocks = 0;
  std::uint32_t block_size = 16;
  std::uint32_t max_step_tokens = 0;
  RequestLimits limits;
  // A text that is longer is computed again (LengthRule::kRecompute); 0 = none.
  std::uint32_t recompute_length = 0;
};

class TgiSession {
 public:
  TgiSession(TgiSessionOptions options, std::shared_ptr<const text::Tokenizer> tokenizer,
             RunPlan run);
  ~TgiSession();

  // `trace` is the traceparent of the call, or empty. It appears in the log of each rank.
  absl::Status Prefill(const generate::v3::PrefillRequest& request,
                       generate::v3::PrefillResponse& response, std::string_view trace = {});
  absl::Status Decode(const generate::v3::DecodeRequest& request,
                      generate::v3::DecodeResponse& response);
  absl::Status FilterBatch(const generate::v3::FilterBatchRequest& request,
                           generate::v3::FilterBatchResponse& response);
  // An unknown id is not an error, because the batch may have ended.
  void ClearCache(std::optional<std::uint64_t> id);

  // Bounds the prompt tokens of later chunks in a step.
  void SetMaxPrefillTokens(std::uint32_t tokens) { max_prefill_tokens_ = tokens; }

  bool empty() const { return batches_.empty(); }
  // The engine failed: all batches are lost, and a new group must be formed.
  bool broken() const { return broken_; }
  std::uint64_t capacity_tokens() const { return pool_.capacity_tokens(); }

 private:
  absl::StatusOr<Members> Admit(const generate::v3::Batch& batch, std::string_view trace);
  absl::StatusOr<std::unique_ptr<Member>> MakeMember(const generate::v3::Request& wire,
                                                     std::string_view trace);
  absl::StatusOr<Members> TakeBatch(std::uint64_t id);
  void Release(Members& members);

  // Runs one step of `members`, then stores them under `id` unless all have stopped.
  template <class Response>
  absl::Status Advance(std::uint64_t id, Members members, Response& response);
  absl::Status RunMembers(const Members& members);
  template <class Response>
  absl::Status Report(const Members& members, Response& response);
  // Recomputes the sequences that are now longer than the recompute length.
  void StartAgain(const Members& members);
  void ChooseChunks(const Members& members) const;
  void Describe(std::uint64_t id, const Members& members, generate::v3::CachedBatch& out) const;

  const TgiSessionOptions options_;
  const std::shared_ptr<const text::Tokenizer> tokenizer_;
  SequencePool pool_;
  BatchRunner runner_;
  std::map<std::uint64_t, Members> batches_;
  std::uint64_t next_sequence_ = 1;
  std::uint32_t max_prefill_tokens_ = 0;  // 0 = no bound
  bool broken_ = false;
};

}  // namespace penstock::shard
