// Messages between router and shards, and of generate.v3.
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/status.h"
#include "generate/v3/generate.pb.h"
#include "penstock/v1/shard.pb.h"
#include "proto/plan_conversion.h"
#include "shard/service/plan_checker.h"
#include "shard/tgi/tgi_session.h"
#include "tests/fuzz/target.h"
#include "tests/unit/support/temp_folder.h"
#include "tests/unit/text/tiny_tokenizer.h"

namespace penstock::fuzz {
namespace {

namespace v3 = generate::v3;

constexpr Epoch kEpoch(1);
constexpr std::uint32_t kVocabulary = 260;

shard::PlanBounds Bounds() {
  shard::PlanBounds bounds;
  bounds.epoch = kEpoch;
  bounds.vocabulary = kVocabulary;
  bounds.slots = 4;
  bounds.blocks = 16;
  bounds.block_size = 4;
  bounds.max_step_tokens = 32;
  bounds.max_sequence_length = 64;
  bounds.max_decode_rows = 2;
  bounds.max_candidates = 4;
  bounds.grammars = true;
  bounds.watermarks = true;
  bounds.adapters = true;
  return bounds;
}

// A message that was read is written and read again as the same.
template <class Message, class Plan>
void CheckSame(const Plan& plan) {
  Message wire;
  proto::ToProto(plan, wire);
  const auto again = proto::FromProto(wire);
  Require(again.ok(), "a message of our own is read");
  Message once_more;
  proto::ToProto(*again, once_more);
  Require(once_more.SerializeAsString() == wire.SerializeAsString(), "the same message");
}

// Answers the plans of a session as a shard does: it checks them and repeats the prompts.
class Echo {
 public:
  absl::StatusOr<StepResult> Run(StepPlan& plan) {
    plan.epoch = kEpoch;
    plan.step = StepId(++steps_);
    const absl::Status valid = checker_.Check(plan);
    Require(valid.ok(), "a session makes valid plans: " + Message(valid));
    for (const SlotId slot : plan.ends) sequences_.erase(slot);
    for (const SequenceStart& start : plan.starts) sequences_[start.slot] = {start, 0, 0};
    StepResult result;
    for (const Segment& segment : plan.segments) result.sequences.push_back(Answer(segment));
    PENSTOCK_RETURN_IF_ERROR(checker_.Observe(plan, result));
    return result;
  }

 private:
  struct Sequence {
    SequenceStart start;
    std::uint32_t committed = 0;
    std::uint32_t generated = 0;
  };

  SequenceResult Answer(const Segment& segment) {
    Sequence& sequence = sequences_.at(segment.slot);
    const SequenceStart& start = sequence.start;
    SequenceResult result{segment.slot, start.sequence, {}, 0, ShardFinish::kNone, {}, {}};
    const bool prompt = segment.kind == Segment::Kind::kPrompt;
    sequence.committed += prompt ? segment.count : 1;
    result.committed_length = sequence.committed;
    if (segment.logits == Segment::Logits::kAll) {
      const bool last = sequence.committed == start.prompt_length;
      result.prompt_logprobs.assign(segment.count - (last ? 1 : 0), -0.5f);
    }
    if (sequence.committed < start.prompt_length) return result;
    const TokenId token = start.prompt[sequence.generated++ % start.prompt.size()];
    result.tokens.push_back({token, -0.25f, {{token, -0.25f}}});
    if (sequence.generated == start.max_new_tokens) result.finish = ShardFinish::kLength;
    return result;
  }

  shard::PlanChecker checker_{Bounds()};
  std::map<SlotId, Sequence> sequences_;
  std::uint64_t steps_ = 0;
};

std::shared_ptr<const text::Tokenizer> SessionTokenizer() {
  static const auto* const tokenizer = [] {
    const TempFolder folder;
    folder.Write("tokenizer.json", text::ByteLevelJson());
    return new std::shared_ptr<const text::Tokenizer>(*text::Tokenizer::Load(folder.path()));
  }();
  return *tokenizer;
}

shard::TgiSession MakeSession(Echo& echo) {
  const shard::PlanBounds bounds = Bounds();
  shard::TgiSessionOptions options;
  options.slots = bounds.slots;
  options.blocks = 16;
  options.block_size = bounds.block_size;
  options.max_step_tokens = bounds.max_step_tokens;
  options.limits = {bounds.vocabulary, bounds.max_sequence_length, true, true};
  return {options, SessionTokenizer(), [&echo](StepPlan& plan) { return echo.Run(plan); }};
}

template <class Request, class Response>
void Call(shard::TgiSession& session, std::string_view bytes,
          absl::Status (shard::TgiSession::*call)(const Request&, Response&)) {
  Request request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  Response response;
  const absl::Status status = (session.*call)(request, response);
  Require(status.ok() || !status.message().empty(), "an error has a text");
}

}  // namespace

// Records: a plan each, in the order of a stream.
void ReadPlans(std::string_view bytes) {
  shard::PlanChecker checker(Bounds());
  for (const std::string_view record : Records(bytes)) {
    v1::StepPlan wire;
    if (!wire.ParseFromArray(record.data(), static_cast<int>(record.size()))) return;
    const auto plan = proto::FromProto(wire);
    if (!plan.ok()) return;
    CheckSame<v1::StepPlan>(*plan);
    if (!checker.Check(*plan).ok()) return;
    checker.Assume(*plan);
  }
}

void ReadStepResult(std::string_view bytes) {
  v1::StepResult wire;
  if (!wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const auto result = proto::FromProto(wire);
  if (result.ok()) CheckSame<v1::StepResult>(*result);
}

// Records: a byte that names the call (p, d, f or c), then its message.
void ReadGenerateV3(std::string_view bytes) {
  Echo echo;
  shard::TgiSession session = MakeSession(echo);
  for (std::string_view record : Records(bytes)) {
    if (record.empty() || session.broken()) return;
    const char call = record.front();
    record.remove_prefix(1);
    v3::PrefillRequest prefill;
    switch (call) {
      case 'p':
        if (prefill.ParseFromArray(record.data(), static_cast<int>(record.size()))) {
          v3::PrefillResponse response;
          (void)session.Prefill(prefill, response);
        }
        break;
      case 'd':
        Call(session, record, &shard::TgiSession::Decode);
        break;
      case 'f':
        Call(session, record, &shard::TgiSession::FilterBatch);
        break;
      default:
        session.ClearCache({});
    }
  }
}

}  // namespace penstock::fuzz
