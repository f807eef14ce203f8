#include "proto/plan_wire.h"

#include <algorithm>
#include <array>

#include "common/status.h"
#include "penstock/v1/shard.pb.h"
#include "proto/plan_conversion.h"
#include "proto/wire_fields.h"

namespace penstock::proto {
namespace {

constexpr std::size_t kMostKept = 64 * 1024;  // bytes of a plan's memory for the next

char* PutNumber(char* at, std::uint64_t number) {
  while (number >= 0x80) {
    *at++ = static_cast<char>(number | 0x80);
    number >>= 7;
  }
  *at++ = static_cast<char>(number);
  return at;
}

// Zero is not written, as everywhere in proto3.
char* PutField(char* at, std::uint32_t field, std::uint64_t number) {
  if (number == 0) return at;
  return PutNumber(PutNumber(at, VarintTag(field)), number);
}

void AppendField(std::string& out, std::uint32_t field, std::uint64_t number) {
  std::array<char, 20> text;
  const char* const end = PutField(text.data(), field, number);
  out.append(text.data(), static_cast<std::size_t>(end - text.data()));
}

// Four numbers of 32 bits at most, so each of the two lengths is one byte.
void AppendSegment(std::string& out, const Segment& segment) {
  constexpr std::size_t kHead = 4;
  std::array<char, kHead + 4 * 6> text;
  const bool decode = segment.kind == Segment::Kind::kDecode;
  char* at =
      PutField(text.data() + kHead, v1::DecodeSegment::kSlotFieldNumber, segment.slot.value());
  if (decode) {
    at = PutField(at, v1::DecodeSegment::kMaxRowsFieldNumber, segment.max_rows);
  } else {
    at = PutField(at, v1::PromptSegment::kFirstFieldNumber, segment.first);
    at = PutField(at, v1::PromptSegment::kCountFieldNumber, segment.count);
    at = PutField(at, v1::PromptSegment::kLogitsFieldNumber,
                  static_cast<std::uint64_t>(segment.logits));
  }
  const auto size = static_cast<std::size_t>(at - text.data()) - kHead;
  text[0] = static_cast<char>(BytesTag(v1::StepPlan::kSegmentsFieldNumber));
  text[1] = static_cast<char>(size + 2);
  text[2] = static_cast<char>(
      BytesTag(decode ? v1::Segment::kDecodeFieldNumber : v1::Segment::kPromptFieldNumber));
  text[3] = static_cast<char>(size);
  out.append(text.data(), kHead + size);
}

// What the enums say is the same number on both sides.
static_assert(static_cast<int>(Segment::Logits::kLast) == v1::LOGITS_WANTED_LAST);
static_assert(static_cast<int>(Segment::Logits::kAll) == v1::LOGITS_WANTED_ALL);
static_assert(static_cast<int>(ShardFinish::kEos) == v1::FINISH_EOS);
static_assert(static_cast<int>(ShardFinish::kLength) == v1::FINISH_LENGTH);
static_assert(static_cast<int>(ShardFinish::kStopToken) == v1::FINISH_STOP_TOKEN);
static_assert(static_cast<int>(ShardFinish::kError) == v1::FINISH_ERROR);

bool HasControl(const StepPlan& plan) {
  return !plan.ends.empty() || !plan.truncates.empty() || !plan.block_ops.empty() ||
         !plan.starts.empty() || !plan.append_tokens.empty() || !plan.groups.empty();
}

// The readers give false for everything that is not in the results of most steps, broken bytes
// included.

bool Read(std::string_view bytes, SampledToken& token) {
  WireFields fields(bytes);
  while (const std::uint32_t tag = fields.Next()) {
    if (tag == VarintTag(v1::SampledToken::kTokenFieldNumber)) {
      token.token = static_cast<TokenId>(fields.Number32());
    } else if (tag == FloatTag(v1::SampledToken::kLogprobFieldNumber)) {
      token.logprob = fields.Float();
    } else {
      return false;
    }
  }
  return fields.ok();
}

bool Read(std::string_view bytes, SequenceResult& sequence) {
  using Wire = v1::SequenceResult;
  WireFields fields(bytes);
  while (const std::uint32_t tag = fields.Next()) {
    if (tag == VarintTag(Wire::kSlotFieldNumber)) {
      sequence.slot = SlotId(fields.Number32());
    } else if (tag == VarintTag(Wire::kSequenceFieldNumber)) {
      sequence.sequence = SequenceId(fields.Number());
    } else if (tag == BytesTag(Wire::kTokensFieldNumber)) {
      if (!Read(fields.Bytes(), sequence.tokens.emplace_back())) return false;
    } else if (tag == VarintTag(Wire::kCommittedLengthFieldNumber)) {
      sequence.committed_length = fields.Number32();
    } else if (tag == VarintTag(Wire::kFinishFieldNumber)) {
      const std::uint64_t finish = fields.Number();
      if (finish > v1::FINISH_ERROR) return false;
      sequence.finish = static_cast<ShardFinish>(finish);
    } else {
      return false;
    }
  }
  return fields.ok();
}

bool Read(std::string_view bytes, StepTimings& timings) {
  WireFields fields(bytes);
  while (const std::uint32_t tag = fields.Next()) {
    if (tag == VarintTag(v1::Timings::kQueuedNsFieldNumber)) {
      timings.queued = Duration(fields.Number());
    } else if (tag == VarintTag(v1::Timings::kForwardNsFieldNumber)) {
      timings.forward = Duration(fields.Number());
    } else if (tag == VarintTag(v1::Timings::kSampleNsFieldNumber)) {
      timings.sample = Duration(fields.Number());
    } else {
      return false;
    }
  }
  return fields.ok();
}

bool Read(std::string_view bytes, StepResult& result) {
  using Wire = v1::StepResult;
  constexpr std::size_t kRowBytes = 16;  // a guess of how many rows there are; most have more
  constexpr std::size_t kMostRows = 1024;
  WireFields fields(bytes);
  result.sequences.reserve(std::min(bytes.size() / kRowBytes, kMostRows));
  while (const std::uint32_t tag = fields.Next()) {
    if (tag == BytesTag(Wire::kSequencesFieldNumber)) {
      if (!Read(fields.Bytes(), result.sequences.emplace_back())) return false;
    } else if (tag == VarintTag(Wire::kEpochFieldNumber)) {
      result.epoch = Epoch(fields.Number());
    } else if (tag == VarintTag(Wire::kStepFieldNumber)) {
      result.step = StepId(fields.Number());
    } else if (tag == VarintTag(Wire::kDigestFieldNumber)) {
      result.digest = fields.Number();
    } else if (tag == BytesTag(Wire::kTimingsFieldNumber)) {
      if (!Read(fields.Bytes(), result.timings)) return false;
    } else if (tag == VarintTag(Wire::kMemoryBytesFieldNumber)) {
      result.memory_bytes = fields.Number();
    } else {
      return false;
    }
  }
  return fields.ok();
}

}  // namespace

PlanWriter::PlanWriter() : control_(std::make_unique<v1::StepPlan>()) {}
PlanWriter::~PlanWriter() = default;

// The memory of a plan with prompts is not kept: it would stay as large as they were.
std::string_view PlanWriter::Write(const StepPlan& plan) {
  if (bytes_.capacity() > kMostKept) std::string().swap(bytes_);
  bytes_.clear();
  AppendField(bytes_, v1::StepPlan::kEpochFieldNumber, plan.epoch.value());
  AppendField(bytes_, v1::StepPlan::kStepFieldNumber, plan.step.value());
  for (const Segment& segment : plan.segments) AppendSegment(bytes_, segment);
  if (!HasControl(plan)) return bytes_;
  ControlToProto(plan, *control_);
  control_->AppendToString(&bytes_);
  if (!plan.starts.empty()) control_ = std::make_unique<v1::StepPlan>();
  return bytes_;
}

absl::StatusOr<StepResult> ReadResult(std::string_view bytes) {
  StepResult result;
  if (Read(bytes, result)) return result;
  v1::StepResult wire;
  if (!wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("a step's result cannot be parsed");
  }
  return FromProto(wire);
}

}  // namespace penstock::proto
