#include "sim/checker/group_model.h"

#include <algorithm>
#include <utility>

#include "sim/checker/start_problems.h"
#include "sim/checker/sub_batches.h"
#include "sim/checker/text_lengths.h"

namespace penstock::sim {
namespace {

using scheduler::AdmissionMode;
using scheduler::Batching;
using scheduler::Config;
using scheduler::GroupUp;
using scheduler::PlanOut;
using scheduler::Prefill;
using scheduler::StepInfo;

}  // namespace

GroupModel::GroupModel(const Config& config, const GroupUp& up, Findings& findings)
    : config_(config),
      id_(up.group),
      epoch_(up.epoch),
      arithmetic_class_(up.arithmetic_class),
      capacity_(up.capacity),
      findings_(findings),
      kv_(config, up.capacity) {}

void GroupModel::Complain(const char* guarantee, const std::string& what) {
  findings_.Add(guarantee, "group " + std::to_string(id_.value()) + ", step " +
                               std::to_string(last_step_.value()) + ": " + what);
}

void GroupModel::Admit(RequestModel& request) {
  if (!request.waiting()) Complain("G2", Name(request.arrival.request) + " is admitted twice");
  request.state = RequestModel::State::kAdmitted;
  request.group = id_;
  request.sequence.reset();
  ++running_;
  reserved_tokens_ += request.WorstCase();
  decode_rows_ += RowsOf(request);
  if (running_ > capacity_.slots) Complain("G5", "more sequences run than there are slots");
  if (config_.max_batch_size > 0 && running_ > config_.max_batch_size) {
    Complain("G5", std::to_string(running_) + " sequences run; max_batch_size is " +
                       std::to_string(config_.max_batch_size));
  }
  if (config_.batching == Batching::kNone && running_ > 1) Complain("G5", "a batch of two");
  if (config_.admission == AdmissionMode::kGuaranteed && config_.max_batch_total_tokens > 0 &&
      reserved_tokens_ > config_.max_batch_total_tokens) {
    Complain("G5", std::to_string(reserved_tokens_) + " tokens are promised; " +
                       "max_batch_total_tokens is " +
                       std::to_string(config_.max_batch_total_tokens));
  }
}

void GroupModel::CheckPlan(const PlanOut& out, const StepInfo& info,
                           std::map<RequestId, RequestModel>& requests,
                           std::set<SequenceId>& used_ids) {
  const StepPlan& plan = out.plan;
  CheckHeader(plan);
  CheckStallFree(plan, requests);
  ApplyEnds(plan);
  MoveWindows(plan);
  if (plan.starts.size() != out.requests.size()) return Complain("G3", "a start of no request");
  for (std::size_t i = 0; i < plan.starts.size(); ++i) {
    ApplyStart(plan.starts[i], requests[out.requests[i]], used_ids);
  }
  for (const BlockOp& op : plan.block_ops) ApplyBlockOp(op);
  // Checked before the plan's own rows are applied, since no row may read what this plan writes.
  for (const SequenceStart& start : plan.starts) {
    const auto started = sequences_.find(start.sequence);
    if (started != sequences_.end()) kv_.CheckPrefix(started->second.kv, findings_);
  }
  ApplyRows(plan);
  InFlight step{plan.step, {}};
  for (const Segment& segment : plan.segments) {
    SequenceModel* const sequence = FindSlot(segment.slot);
    if (sequence == nullptr) {
      Complain("G8", "a segment names a slot whose sequence has ended, or that holds none");
      continue;
    }
    ApplySegment(segment, requests[sequence->request], *sequence, step);
  }
  in_flight_.push_back(std::move(step));
  for (const auto kind : {BlockOp::Kind::kRestoreState, BlockOp::Kind::kSaveState}) {
    ApplySnapshots(plan, kind);
  }
  CheckBudgets(plan, info);
  CheckTotalTokens(requests);
  for (const std::string& what : PartitionProblems(plan)) Complain("G5", what);
  CheckRows(plan, info);
  CheckCellsPromised(requests);
}

void GroupModel::CheckHeader(const StepPlan& plan) {
  last_step_ = StepId(last_step_.value() + 1);
  if (plan.epoch != epoch_) Complain("G3", "a plan of another epoch");
  if (plan.step != last_step_) Complain("G3", "steps are gapless");
  if (in_flight_.size() >= config_.pipeline_depth) Complain("G5", "more plans than pipeline_depth");
  if (plan.segments.empty() && plan.ends.empty())
    Complain("G4", "a plan without segments and ends");
}

void GroupModel::ApplyEnds(const StepPlan& plan) {
  for (const SlotId slot : plan.ends) {
    const auto it = slots_.find(slot);
    if (it == slots_.end()) {
      Complain("G8", "ends name a slot that holds nothing");
      continue;
    }
    if (sequences_.contains(it->second)) {
      Complain("G8", "ends name sequence " + std::to_string(it->second.value()) +
                         ", which runs or is named by a plan in flight");
    }
    slots_.erase(it);
  }
}

void GroupModel::ApplyStart(const SequenceStart& start, RequestModel& request,
                            std::set<SequenceId>& used_ids) {
  if (!used_ids.insert(start.sequence).second) Complain("G3", "a sequence id is used twice");
  if (start.slot.value() >= capacity_.slots) Complain("G5", "a start on a slot that is not there");
  if (!slots_.emplace(start.slot, start.sequence).second) {
    Complain("G8", "a start on a slot whose sequence has not ended");
    slots_[start.slot] = start.sequence;
  }
  if (request.state != RequestModel::State::kAdmitted || request.group != id_ || request.sequence) {
    Complain("G8", Name(request.arrival.request) + " starts without an admission");
  }
  request.sequence = start.sequence;
  for (const std::string& what : StartProblems(start, request)) {
    Complain("G3", Name(request.arrival.request) + " starts with another " + what);
  }

  SequenceModel sequence;
  sequence.request = request.arrival.request;
  sequence.slot = start.slot;
  sequence.prompt_length = start.prompt_length;
  sequence.base = request.received();
  sequence.planned = start.cached_length;
  sequence.candidates = start.sampling.Candidates();
  sequence.kv.sequence = start.sequence;
  sequence.kv.cached_length = start.cached_length;
  SetTextLengths(capacity_, start, request.arrival.tenant, sequence);
  ++live_;
  sequences_[start.sequence] = std::move(sequence);
}

void GroupModel::ApplyBlockOp(const BlockOp& op) {
  if (IsOfState(op.kind)) return;
  SequenceModel* const sequence = FindSlot(op.slot);
  if (sequence == nullptr) return Complain("G1", "a block for a slot that holds nothing");
  if (sequence->ended) Complain("G8", "a block for a sequence that has ended");
  kv_.Apply(op, sequence->kv, findings_);
  kv_.CheckBound(sequence->kv, findings_);
}

void GroupModel::ApplySnapshots(const StepPlan& plan, BlockOp::Kind kind) {
  for (const BlockOp& op : plan.block_ops) {
    const SequenceModel* const sequence = op.kind == kind ? FindSlot(op.slot) : nullptr;
    if (sequence != nullptr) kv_.ApplyState(op, sequence->kv, sequence->planned, findings_);
  }
}

void GroupModel::MoveWindows(const StepPlan& plan) {
  for (const Segment& segment : plan.segments) {
    SequenceModel* const sequence = FindSlot(segment.slot);
    if (sequence != nullptr && !sequence->ended) kv_.MoveTo(sequence->kv, sequence->Known());
  }
}

void GroupModel::ApplySegment(const Segment& segment, const RequestModel& request,
                              SequenceModel& sequence, InFlight& step) {
  if (sequence.ended) Complain("G8", Name(sequence.request) + " is in a plan after its end");
  const bool prompt = segment.kind == Segment::Kind::kPrompt;
  const std::uint32_t most =
      prompt ? PlanPrompt(segment, sequence) : PlanDecode(segment, request, sequence);
  if (!step.named.emplace(sequence.kv.sequence, most).second) {
    Complain("G3", Name(sequence.request) + " is in one plan twice");
    return;
  }
  sequence.tokens_in_flight += most;
  ++sequence.plans_in_flight;
}

std::uint32_t GroupModel::PlanPrompt(const Segment& segment, SequenceModel& sequence) {
  const std::uint32_t end = segment.first + segment.count;
  if (segment.first != sequence.planned || segment.count == 0 || end > sequence.prompt_length) {
    Complain("G3", Name(sequence.request) + ": chunk [" + std::to_string(segment.first) + ", " +
                       std::to_string(end) + ") does not follow position " +
                       std::to_string(sequence.planned));
    return 0;
  }
  // A restarted request has a longer prompt, which is split if it exceeds a step.
  const bool fits = sequence.base == 0 || sequence.prompt_length <= prefill_tokens();
  const bool cut = capacity_.snapshots > 0 && end % capacity_.block_size == 0;
  if (config_.prefill == Prefill::kWhole && fits && !cut && end != sequence.prompt_length) {
    Complain("G5", "a prompt is split although prompts are computed whole");
  }
  kv_.NeedPositions(sequence.kv, end, findings_);
  for (std::uint32_t p = segment.first; p < end; ++p) kv_.Write(sequence.kv, p, findings_);
  sequence.planned = end;
  return end == sequence.prompt_length && sequence.candidates == 0 ? 1 : 0;
}

std::uint32_t GroupModel::PlanDecode(const Segment& segment, const RequestModel& request,
                                     SequenceModel& sequence) {
  const std::uint32_t rows = segment.max_rows;
  const std::uint32_t most = sequence.generated + sequence.tokens_in_flight;
  if (sequence.planned < sequence.prompt_length) {
    Complain("G3", Name(sequence.request) + " decodes before its prompt is planned");
  }
  const bool contrastive = sequence.candidates > 0;
  const std::uint32_t most_rows = MostRows(request.arrival);
  const bool wrong = contrastive ? rows != sequence.candidates : rows == 0 || rows > most_rows;
  if (wrong) Complain("G5", std::to_string(rows) + " rows of a decode");
  const std::uint32_t tokens = contrastive ? 1 : rows;
  if (sequence.base + most + tokens > request.Last()) {
    Complain("G3", Name(sequence.request) + " may yield " +
                       std::to_string(sequence.base + most + tokens) + " tokens and ends at " +
                       std::to_string(request.Last()));
  }
  if (tokens > sequence.PositionsLeft()) Complain("G3", "a decode passes the original length");
  // K and V of the newest token are written with it (contrastive search) or by the next decode.
  const std::uint64_t written = std::uint64_t{sequence.prompt_length} + most + tokens;
  if (!sequence.joined) {
    kv_.NeedPositions(sequence.kv, written - (contrastive ? 0 : 1), findings_);
  }
  return tokens;
}

void GroupModel::CheckBudgets(const StepPlan& plan, const StepInfo& info) {
  std::uint32_t rows = 0;
  std::uint32_t prefill = 0;
  for (const Segment& segment : plan.segments) {
    rows += segment.Rows();
    if (segment.kind == Segment::Kind::kPrompt) prefill += segment.count;
  }
  if (rows > step_tokens()) {
    Complain("G5", std::to_string(rows) + " rows in a step of " + std::to_string(step_tokens()));
  }
  if (prefill > prefill_tokens()) {
    Complain("G5", std::to_string(prefill) + " prompt tokens in a step with a share of " +
                       std::to_string(prefill_tokens()));
  }
  if (info.group != id_ || info.step != plan.step || info.prefill_tokens != prefill ||
      info.decode_rows != rows - prefill || info.sequences != plan.segments.size()) {
    Complain("G5", "StepInfo does not match the plan");
  }
  kv_.CheckStep(info, findings_);
  for (const std::string& what : SplitProblems(plan, info, config_.max_splits))
    Complain("G5", what);
}

// Counts the tokens that running requests have, whatever was reserved for them.
void GroupModel::CheckTotalTokens(const std::map<RequestId, RequestModel>& requests) {
  if (config_.max_batch_total_tokens == 0) return;
  std::uint64_t tokens = 0;
  for (const auto& [id, request] : requests) {
    if (request.group != id_) continue;
    const SequenceModel* sequence = request.sequence ? Find(*request.sequence) : nullptr;
    tokens += request.prompt() + request.received();
    if (sequence != nullptr) tokens += sequence->tokens_in_flight;
  }
  if (tokens <= config_.max_batch_total_tokens) return;
  Complain("G5", std::to_string(tokens) + " tokens run; max_batch_total_tokens is " +
                     std::to_string(config_.max_batch_total_tokens));
}

SequenceModel* GroupModel::FindSlot(SlotId slot) {
  const auto named = slots_.find(slot);
  if (named == slots_.end()) return nullptr;
  const auto it = sequences_.find(named->second);
  return it == sequences_.end() ? nullptr : &it->second;
}

void GroupModel::ApplyRows(const StepPlan& plan) {
  for (auto& [id, sequence] : sequences_) sequence.listed = false;
  for (const SegmentGroup& group : plan.groups) {
    if (!group.rows.empty() && capacity_.cells == 0) Complain("G1", "rows in the paged layout");
    for (const SlotId row : group.rows) {
      SequenceModel* const sequence = FindSlot(row);
      if (sequence == nullptr || sequence->ended) {
        Complain("G8", "a row of a sequence that has ended");
        continue;
      }
      if (sequence->listed) Complain("G1", Name(sequence->request) + " has two rows");
      sequence->listed = true;
      if (sequence->joined) continue;
      sequence->joined = plan.step;
      kv_.Retire(sequence->kv);
    }
  }
}

// Runs after the plan's segments are applied, so lengths are those at the end of the step.
void GroupModel::CheckRows(const StepPlan& plan, const StepInfo& info) {
  if (capacity_.cells == 0) return;
  std::uint64_t cells = 0;
  for (const SegmentGroup& group : plan.groups) {
    std::uint64_t longest = 0;
    for (const SlotId row : group.rows) {
      const SequenceModel* const sequence = FindSlot(row);
      if (sequence == nullptr) continue;
      const std::uint64_t tokens = std::uint64_t{sequence->generated} + sequence->tokens_in_flight;
      const std::uint64_t length = sequence->prompt_length + tokens;
      longest = std::max(longest, length - (sequence->candidates > 0 ? 0 : 1));
    }
    if (group.width != longest) {
      Complain("G1", "a sub-batch has width " + std::to_string(group.width) +
                         ", its longest row has " + std::to_string(longest) + " positions");
    }
    cells += longest * group.rows.size();
  }
  if (cells > capacity_.cells) {
    Complain("G7", std::to_string(cells) + " cells of " + std::to_string(capacity_.cells));
  }
  if (cells != info.decode_cells) Complain("G1", "StepInfo has another number of cells");
  for (const auto& [id, sequence] : sequences_) {
    if (sequence.joined && !sequence.ended && !sequence.listed) {
      Complain("G1", Name(sequence.request) + " loses its row while it runs");
    }
  }
}

std::uint64_t GroupModel::LeastCells(const std::map<RequestId, RequestModel>& requests,
                                     const RequestModel* newcomer) const {
  std::vector<std::uint64_t> lengths;
  for (const auto& [id, request] : requests) {
    if (request.group == id_) lengths.push_back(request.WorstCase());
  }
  if (newcomer != nullptr) lengths.push_back(newcomer->WorstCase());
  return CellsOfBestPartition(std::move(lengths), config_.max_splits);
}

void GroupModel::CheckCellsPromised(const std::map<RequestId, RequestModel>& requests) {
  if (capacity_.cells == 0) return;
  const std::uint64_t promised = LeastCells(requests, nullptr);
  if (promised <= capacity_.cells) return;
  Complain("G7",
           std::to_string(promised) + " cells are promised of " + std::to_string(capacity_.cells));
}

// With full reservations, every sequence that can decode is in every plan.
void GroupModel::CheckStallFree(const StepPlan& plan,
                                const std::map<RequestId, RequestModel>& requests) {
  if (config_.admission != AdmissionMode::kGuaranteed) return;
  for (const auto& [id, sequence] : sequences_) {
    if (!Decodable(sequence, requests.at(sequence.request))) continue;
    const auto named = [&](const Segment& segment) { return segment.slot == sequence.slot; };
    if (std::none_of(plan.segments.begin(), plan.segments.end(), named)) {
      Complain("G4", Name(sequence.request) + " could decode and is left out of the plan");
    }
  }
}

bool GroupModel::TakeResult(const StepResult& result) {
  if (in_flight_.empty() || result.epoch != epoch_ || in_flight_.front().step != result.step) {
    return false;
  }
  const InFlight done = std::move(in_flight_.front());
  in_flight_.pop_front();
  for (const SequenceResult& part : result.sequences) TakePart(part, done.step);
  for (const auto& [id, most] : done.named) {
    SequenceModel& sequence = sequences_.at(id);  // kept while a plan in flight names it
    sequence.tokens_in_flight -= most;
    --sequence.plans_in_flight;
    if (sequence.joined == done.step) {
      kv_.Reclaim(sequence.kv);
      sequence.kv.blocks.clear();
    }
    ReclaimUnnamed(id);
  }
  return true;
}

// A result tells the contents of decoded positions. The next decode writes the newest token.
void GroupModel::TakePart(const SequenceResult& part, StepId step) {
  const auto it = sequences_.find(part.sequence);
  if (it == sequences_.end()) return;
  SequenceModel& sequence = it->second;
  // A step that computes a row in the padded layout writes no block.
  const bool in_blocks = !sequence.joined || step < *sequence.joined;
  if (part.finish == ShardFinish::kError && in_blocks) kv_.Invalidate(sequence.kv);
  for (const SampledToken& token : part.tokens) {
    const auto position = static_cast<std::uint32_t>(sequence.kv.histories.size());
    sequence.kv.histories.push_back(Extend(sequence.kv.histories.back(), token.token));
    ++sequence.generated;
    if (sequence.joined) continue;  // the simulated shard checks the row
    if (sequence.candidates > 0) {
      kv_.Write(sequence.kv, position, findings_);
    } else if (sequence.generated > 1) {
      kv_.Write(sequence.kv, position - 1, findings_);
    }
  }
}

void GroupModel::End(RequestModel& request) {
  if (request.group != id_) return;
  request.group.reset();
  --running_;
  reserved_tokens_ -= request.WorstCase();
  decode_rows_ -= RowsOf(request);
  if (!request.sequence) ++reclaimed_.sequences;  // it never started
  if (!request.sequence) return;
  const auto it = sequences_.find(*request.sequence);
  if (it == sequences_.end()) return;
  SequenceModel& sequence = it->second;
  sequence.ended = true;
  --live_;
  if (!sequence.joined) kv_.Retire(sequence.kv);
  ReclaimUnnamed(*request.sequence);
}

void GroupModel::ReclaimUnnamed(SequenceId id) {
  const auto it = sequences_.find(id);
  if (it == sequences_.end() || !it->second.ended || it->second.plans_in_flight > 0) return;
  ++reclaimed_.sequences;
  reclaimed_.blocks += kv_.Held(it->second.kv);
  kv_.Reclaim(it->second.kv);
  sequences_.erase(it);
}

bool GroupModel::SomethingRunnable(const std::map<RequestId, RequestModel>& requests) const {
  for (const auto& [id, sequence] : sequences_) {
    if (sequence.ended) continue;
    if (sequence.planned < sequence.prompt_length) return true;
    if (Decodable(sequence, requests.at(sequence.request))) return true;
  }
  return false;
}

GroupModel::Blocks GroupModel::WorstCase(const std::map<RequestId, RequestModel>& requests) const {
  std::vector<bool> held(kv().total());
  Blocks worst_case;
  for (const auto& [id, sequence] : sequences_) {
    const RequestModel& request = requests.at(sequence.request);
    const bool fixed = IsPromised(config_.admission, request) || request.preemptions >= 3;
    if (sequence.ended || !fixed) continue;
    if (sequence.joined) continue;
    worst_case.in_window += kv_.WindowBlocksFor(request.WorstCase());
    for (const BlockId block : sequence.kv.blocks) {
      if (held[block.value()]) continue;
      held[block.value()] = true;
      ++worst_case.in_full;
    }
    const std::uint64_t tokens = capacity_.cells > 0 ? sequence.prompt_length : request.WorstCase();
    const std::uint64_t worst = BlocksFor(tokens, capacity_.block_size);
    worst_case.in_full += worst - std::min<std::uint64_t>(worst, sequence.kv.blocks.size());
  }
  return worst_case;
}

bool GroupModel::HasRoomForAll(const std::map<RequestId, RequestModel>& requests) const {
  Blocks blocks{kv().retiring(), window_kv().retired_holders()};
  for (const auto& [id, request] : requests) {
    if (request.group != id_) continue;
    const std::uint64_t tokens = request.WorstCase() + MostRows(request.arrival);
    blocks.in_full += BlocksFor(tokens, capacity_.block_size);
    blocks.in_window += kv_.WindowBlocksFor(tokens);
  }
  const std::uint64_t limit = config_.max_batch_total_tokens;
  return blocks.in_full <= kv().total() && blocks.in_window <= window_kv().total() &&
         (limit == 0 || reserved_tokens_ <= limit);
}

bool GroupModel::Fits(const RequestModel& request) const {
  const std::uint64_t worst = request.WorstCase();
  if (!SameArithmetic(request) || worst > capacity_.max_sequence_length) return false;
  if (config_.max_batch_total_tokens > 0 && worst > config_.max_batch_total_tokens) return false;
  if (worst > std::uint64_t{capacity_.blocks} * capacity_.block_size) return false;
  if (kv_.WindowBlocksFor(worst) > capacity_.window_blocks) return false;
  if (capacity_.cells > 0 && worst > capacity_.cells) return false;
  const std::uint32_t candidates = request.arrival.sampling.Candidates();
  if (candidates > std::min(capacity_.max_candidates, step_tokens())) return false;
  return config_.prefill != Prefill::kWhole || request.prompt() <= prefill_tokens();
}

bool GroupModel::HasRoomFor(const RequestModel& request,
                            const std::map<RequestId, RequestModel>& requests) const {
  const std::uint64_t worst = request.WorstCase();
  const std::uint32_t batch = config_.max_batch_size;
  if (running_ >= (batch > 0 ? std::min(batch, capacity_.slots) : capacity_.slots)) return false;
  if (sequences_.size() >= capacity_.slots) return false;
  if (running_ > 0 && decode_rows_ + RowsOf(request) > step_tokens()) return false;
  const std::uint64_t total = config_.max_batch_total_tokens;
  if (total > 0 && reserved_tokens_ + worst > total) return false;
  const bool padded = capacity_.cells > 0;
  if (padded && LeastCells(requests, &request) > capacity_.cells) return false;
  const std::uint64_t in_blocks = padded ? request.prompt() + request.received() : worst;
  Blocks blocks = WorstCase(requests);
  blocks.in_full += BlocksFor(in_blocks, capacity_.block_size) + kv().retiring();
  blocks.in_window += kv_.WindowBlocksFor(worst) + window_kv().retired_holders();
  return blocks.in_full <= kv().total() && blocks.in_window <= window_kv().total();
}

}  // namespace penstock::sim
