#include "shard/tgi/tgi_session.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "common/status.h"
#include "generate/v3/generate.pb.h"
#include "shard/sampling/sampler.h"

namespace penstock::shard {
namespace {

namespace v3 = generate::v3;

std::uint64_t Nanoseconds(Duration time) { return static_cast<std::uint64_t>(time.count()); }

bool HasStopped(const std::unique_ptr<Member>& member) { return member->stopped; }

absl::Status NotFound(std::uint64_t id) {
  return absl::InternalError("Batch ID " + std::to_string(id) + " not found in cache.");
}

}  // namespace

TgiSession::TgiSession(TgiSessionOptions options, std::shared_ptr<const text::Tokenizer> tokenizer,
                       RunPlan run)
    : options_(std::move(options)),
      tokenizer_(std::move(tokenizer)),
      pool_(options_.slots, options_.blocks, options_.block_size),
      runner_(std::move(run), options_.max_step_tokens, pool_) {}

TgiSession::~TgiSession() = default;

absl::Status TgiSession::Prefill(const v3::PrefillRequest& request, v3::PrefillResponse& response,
                                 std::string_view trace) {
  const bool joins = request.has_cached_batch();
  const std::uint64_t id = joins ? request.cached_batch().id() : request.batch().id();
  if (joins && !batches_.contains(id)) return NotFound(id);
  if (!joins) ClearCache(id);  // replaces a batch of the same id
  auto admitted = Admit(request.batch(), trace);
  if (!admitted.ok()) {
    // TGI's router does not name the cached batch again, so it is dropped.
    if (joins) ClearCache(id);
    return admitted.status();
  }
  Members members;
  if (joins) {
    PENSTOCK_ASSIGN_OR_RETURN(members, TakeBatch(id));
    response.set_concat_ns(0);
  }
  std::move(admitted->begin(), admitted->end(), std::back_inserter(members));
  return Advance(id, std::move(members), response);
}

absl::Status TgiSession::Decode(const v3::DecodeRequest& request, v3::DecodeResponse& response) {
  if (request.batches().empty()) return absl::InternalError("Must provide at least one batch");
  std::set<std::uint64_t> named;
  for (const v3::CachedBatch& batch : request.batches()) {
    if (!batches_.contains(batch.id()) || !named.insert(batch.id()).second) {
      return NotFound(batch.id());
    }
  }
  const Time begin = SteadyNow();
  Members members;
  for (const v3::CachedBatch& batch : request.batches()) {
    PENSTOCK_ASSIGN_OR_RETURN(Members taken, TakeBatch(batch.id()));
    std::move(taken.begin(), taken.end(), std::back_inserter(members));
  }
  if (request.batches_size() > 1) response.set_concat_ns(Nanoseconds(SteadyNow() - begin));
  return Advance(request.batches(0).id(), std::move(members), response);
}

absl::Status TgiSession::FilterBatch(const v3::FilterBatchRequest& request,
                                     v3::FilterBatchResponse& response) {
  const auto found = batches_.find(request.batch_id());
  if (found == batches_.end()) return NotFound(request.batch_id());
  if (request.request_ids().empty()) {
    return absl::InternalError("Batch must have at least one request");
  }
  std::set<std::uint64_t> held;
  for (const auto& member : found->second) held.insert(member->request.id);
  const std::set<std::uint64_t> kept(request.request_ids().begin(), request.request_ids().end());
  for (std::uint64_t id : kept) {
    if (held.contains(id)) continue;
    return absl::InternalError("Request ID " + std::to_string(id) + " not found in batch " +
                               std::to_string(request.batch_id()));
  }
  Members members;
  for (std::uint64_t id : request.request_ids()) {
    for (auto& member : found->second) {
      if (member != nullptr && member->request.id == id) members.push_back(std::move(member));
    }
  }
  std::erase(found->second, nullptr);
  Release(found->second);
  found->second = std::move(members);
  Describe(request.batch_id(), found->second, *response.mutable_batch());
  return absl::OkStatus();
}

void TgiSession::ClearCache(std::optional<std::uint64_t> id) {
  if (!id.has_value()) {
    for (auto& [_, members] : batches_) Release(members);
    batches_.clear();
    return;
  }
  const auto found = batches_.find(*id);
  if (found == batches_.end()) return;
  Release(found->second);
  batches_.erase(found);
}

absl::StatusOr<Members> TgiSession::Admit(const v3::Batch& batch, std::string_view trace) {
  if (batch.requests().empty()) return absl::InternalError("Batch must have at least one request");
  Members members;
  for (const v3::Request& wire : batch.requests()) {
    auto member = MakeMember(wire, trace);
    if (!member.ok()) {
      Release(members);
      return member.status();
    }
    members.push_back(*std::move(member));
  }
  return members;
}

absl::StatusOr<std::unique_ptr<Member>> TgiSession::MakeMember(const v3::Request& wire,
                                                               std::string_view trace) {
  auto request = ReadRequest(wire, *tokenizer_, options_.limits);
  if (!request.ok()) return WithContext(request.status(), "request " + std::to_string(wire.id()));
  SequenceStart& start = request->start;
  start.trace_id = trace;
  PENSTOCK_ASSIGN_OR_RETURN(RequestText text,
                            RequestText::Create(*tokenizer_, start.prompt, request->stops));
  // The last new token is not computed.
  const std::uint32_t positions = start.prompt_length + start.max_new_tokens - 1;
  PENSTOCK_ASSIGN_OR_RETURN(SequencePool::Allocation allocation,
                            pool_.Take(positions, request->health));
  auto member = std::make_unique<Member>(*std::move(request), std::move(text));
  member->allocation = std::move(allocation);
  member->sequence = SequenceId(next_sequence_++);
  const SequenceStart& begun = member->request.start;
  if (begun.prompt_length <= options_.recompute_length) member->tokens = begun.prompt;
  member->next = member->request.first_chunk;
  return member;
}

absl::StatusOr<Members> TgiSession::TakeBatch(std::uint64_t id) {
  const auto found = batches_.find(id);
  if (found == batches_.end()) return NotFound(id);
  Members members = std::move(found->second);
  batches_.erase(found);
  std::erase_if(members, HasStopped);
  return members;
}

void TgiSession::Release(Members& members) {
  for (const auto& member : members) {
    if (!member->stopped) pool_.Release(member->allocation, member->started);
  }
  members.clear();
}

template <class Response>
absl::Status TgiSession::Advance(std::uint64_t id, Members members, Response& response) {
  const Time begin = SteadyNow();
  if (std::all_of(members.begin(), members.end(), HasStopped)) return absl::OkStatus();
  if (absl::Status run = RunMembers(members); !run.ok()) return run;
  const Time computed = SteadyNow();
  if (absl::Status reported = Report(members, response); !reported.ok()) {
    Release(members);
    return reported;
  }
  StartAgain(members);
  ChooseChunks(members);
  if (!std::all_of(members.begin(), members.end(), HasStopped)) {
    Describe(id, members, *response.mutable_batch());
    batches_[id] = std::move(members);
  }
  const Time end = SteadyNow();
  response.set_forward_ns(Nanoseconds(runner_.engine_time()));
  response.set_decode_ns(Nanoseconds(end - computed));
  response.set_total_ns(Nanoseconds(end - begin));
  return absl::OkStatus();
}

absl::Status TgiSession::RunMembers(const Members& members) {
  const absl::Status run = runner_.Run(members);
  if (run.ok()) return run;
  broken_ = true;
  batches_.clear();
  return absl::InternalError(Message(run));
}

template <class Response>
absl::Status TgiSession::Report(const Members& members, Response& response) {
  for (const auto& member : members) {
    if (member->finish != ShardFinish::kError) continue;
    const bool client_error = member->error.starts_with(kGrammarError);
    return absl::Status(
        client_error ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kInternal,
        "request " + std::to_string(member->request.id) + ": " + member->error);
  }
  for (const auto& member : members) {
    if (member->stopped || !member->sampled.has_value()) continue;
    v3::Generation* out = options_.reports ? response.add_generations() : nullptr;
    PENSTOCK_RETURN_IF_ERROR(TakeToken(*member, *tokenizer_, out));
    if (!member->tokens.empty()) member->tokens.push_back(member->sampled->token);
    if (member->stopped) pool_.Release(member->allocation, true);
  }
  return absl::OkStatus();
}

void TgiSession::StartAgain(const Members& members) {
  for (const auto& member : members) {
    if (member->stopped || member->tokens.size() <= options_.recompute_length) continue;
    if (!member->tokens.empty()) member->StartAgain(SequenceId(next_sequence_++));
  }
}

// As in TGI's shard: the last request first, at least one token for each.
void TgiSession::ChooseChunks(const Members& members) const {
  std::int64_t budget = std::numeric_limits<std::uint32_t>::max();
  if (max_prefill_tokens_ > 0) {
    budget = std::int64_t{max_prefill_tokens_} - (static_cast<std::int64_t>(members.size()) - 1);
  }
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    Member& each = **member;
    each.next = 1;
    if (!each.prefilling()) continue;
    const std::int64_t rest = each.request.start.prompt_length - each.computed;
    if (each.generated > 0) {  // its next token is due
      each.next = static_cast<std::uint32_t>(rest);
      continue;
    }
    each.next = static_cast<std::uint32_t>(std::max<std::int64_t>(1, std::min(rest, budget)));
    budget -= each.next;
  }
}

void TgiSession::Describe(std::uint64_t id, const Members& members, v3::CachedBatch& out) const {
  std::uint64_t blocks = 0;
  std::uint64_t tokens = 0;
  for (const auto& member : members) {
    out.add_request_ids(member->request.id);
    blocks += member->allocation.blocks.size();
    tokens += member->next;
  }
  out.set_id(id);
  out.set_size(static_cast<std::uint32_t>(members.size()));
  out.set_max_tokens(static_cast<std::uint32_t>(blocks * options_.block_size));
  out.set_current_tokens(static_cast<std::uint32_t>(tokens));
}

}  // namespace penstock::shard
