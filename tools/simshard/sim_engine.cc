#include "tools/simshard/sim_engine.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "common/status.h"
#include "shard/executor/warmup_sweep.h"

namespace penstock::simshard {

using shard::RankSequence;

namespace {

std::uint64_t HashText(std::uint64_t state, const std::string& text) {
  for (char c : text) state = MixHash(state, static_cast<unsigned char>(c));
  return state;
}

// A plan read within this time after a step counts as in time: only the thread's wake-up was late.
// The next step then starts at the end of the last one, so lateness does not add up.
constexpr Duration kLateness = std::chrono::milliseconds(2);

}  // namespace

SimEngine::SimEngine(SimOptions options) : options_(std::move(options)) {}

v1::DescribeResponse SimEngine::Facts() const {
  v1::DescribeResponse facts;
  facts.set_model_id(options_.model_folder.empty() ? "simulated" : options_.model_folder);
  facts.set_rank(options_.rank);
  facts.set_world_size(options_.world_size);
  facts.set_block_size(options_.block_size);
  facts.set_attention(v1::ATTENTION_LAYOUT_RAGGED);
  facts.set_bos_token_id(-1);
  if (!loaded_) return facts;
  facts.set_model_type(facts_.model_type);
  facts.set_dtype("float32");
  facts.set_device("cpu");
  facts.set_backend("simulated");
  facts.set_vocabulary(facts_.vocabulary);
  facts.mutable_eos_token_ids()->Add(facts_.eos_token_ids.begin(), facts_.eos_token_ids.end());
  const std::uint32_t cells = options_.blocks * options_.block_size;
  facts.set_max_position(facts_.max_position > 0 ? facts_.max_position : cells);
  if (options_.max_sequence_length > 0) facts.set_max_position(options_.max_sequence_length);
  v1::KvGroup& group = *facts.add_kv_groups();
  group.set_bytes_per_token(sizeof(std::uint64_t));
  group.set_layers(1);
  if (options_.window > 0) {
    v1::KvGroup& windows = *facts.add_kv_groups();
    windows.set_bytes_per_token(sizeof(std::uint64_t));
    windows.set_layers(1);
    windows.set_window(options_.window);
  }
  for (const char* name :
       {"simulated", "copy", "prefix_caching", "contrastive_search", "adapters"}) {
    facts.add_capabilities(name);
  }
  if (tokenizer_ != nullptr) {
    // An echo ignores sampling parameters and follows directives in the request's text.
    for (const char* name : {"shows-requests", "grammar", "watermark"}) {
      facts.add_capabilities(name);
    }
  }
  const std::uint64_t sizes = MixHash(facts_.vocabulary, facts.max_position());
  const std::uint64_t hash = HashText(MixHash(sizes, options_.window), facts_.model_type);
  facts.set_fingerprint("simulated-" + std::to_string(hash));
  return facts;
}

absl::Status SimEngine::Load(const shard::LoadCallback& progress) {
  v1::LoadProgress stage;
  stage.set_stage("tokenizer.json");
  progress(stage);
  if (options_.model_folder.empty()) {
    facts_ = PlainFacts(options_.vocabulary);
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(facts_, ReadModelFacts(options_.model_folder));
    if (options_.tokens == TokenRule::kEcho) {
      PENSTOCK_ASSIGN_OR_RETURN(tokenizer_, text::Tokenizer::Load(options_.model_folder));
    }
  }
  loaded_ = true;
  return absl::OkStatus();
}

absl::Status SimEngine::Configure(const v1::ConfigureRequest& setup) {
  setup_ = setup;
  return absl::OkStatus();
}

absl::StatusOr<shard::ReadyAdapter> SimEngine::ReadAdapter(const std::string& folder) const {
  if (std::filesystem::exists(folder + "/adapter_config.json")) return {{nullptr, folder, 8, 0}};
  return absl::NotFoundError(folder + ": adapter_config.json is missing");
}

absl::StatusOr<v1::WarmupResponse> SimEngine::Warmup() {
  v1::WarmupResponse report;
  report.add_blocks(options_.blocks);
  if (options_.window > 0) {
    report.add_blocks(has_window() ? options_.window_blocks : options_.blocks);
  }
  const v1::Limits& limits = setup_.limits();
  const std::uint64_t pool = std::uint64_t{options_.blocks} * options_.block_size;
  for (StepTimeSample sample : shard::WarmupSweep({limits.max_step_tokens(), limits.max_sequences(),
                                                   limits.max_sequence_length(), pool})) {
    scheduler::StepShape step;
    const bool decodes = sample.decode_rows > 0;
    if (sample.prefill_tokens > 0) {
      step.AddChunk(decodes ? 0 : sample.context_tokens, sample.prefill_tokens);
    }
    if (decodes) step.AddDecode(sample.context_tokens, sample.decode_rows);
    sample.time = StepTime(step);
    shard::AddStepTime(sample, report);
  }
  return report;
}

Duration SimEngine::StepTime(const scheduler::StepShape& step) const {
  Duration time =
      options_.step_time + options_.token_time * static_cast<Duration::rep>(step.Tokens());
  if (options_.machine.has_value()) time += options_.machine->StepTime(step);
  return std::chrono::duration_cast<Duration>(time * options_.time_scale);
}

// Before the rows are written.
scheduler::StepShape SimEngine::ShapeOf(const std::vector<Segment>& segments) {
  scheduler::StepShape step;
  for (const Segment& segment : segments) {
    if (segment.kind == Segment::Kind::kPrompt) {
      step.AddChunk(segment.first, segment.count);
    } else {
      step.AddDecode(slots_.at(segment.slot).committed + 1, segment.max_rows);
    }
  }
  return step;
}

absl::StatusOr<std::uint64_t> SimEngine::Commit(const shard::PoolSize& pool) {
  caches_.assign(1, SimCache(pool.blocks[0], options_.block_size));
  if (has_window()) caches_.emplace_back(pool.blocks[1], options_.block_size);
  slots_ =
      shard::SlotTable(setup_.limits().max_sequences(), static_cast<std::uint32_t>(caches_.size()));
  stories_.assign(setup_.limits().max_sequences(), std::nullopt);
  return CacheBytes();
}

std::uint64_t SimEngine::CacheBytes() const {
  std::uint64_t bytes = 0;
  for (const SimCache& cache : caches_) bytes += cache.Bytes();
  return bytes;
}

void SimEngine::Reset() {
  slots_.Reset();
  std::fill(stories_.begin(), stories_.end(), std::nullopt);
}

void SimEngine::Interrupt() {
  {
    std::lock_guard lock(mutex_);
    interrupted_ = true;
  }
  interrupted_changed_.notify_all();
}

absl::StatusOr<StepResult> SimEngine::Execute(const StepPlan& plan) {
  const Time begin = SteadyNow();
  const StepFaults faults = options_.faults.At(plan.step.value());
  PENSTOCK_RETURN_IF_ERROR(Disturb(plan, faults));
  std::vector<Segment> live;
  ApplyControl(plan);
  for (const Segment& segment : plan.segments) {
    if (slots_.at(segment.slot).finish == ShardFinish::kNone) live.push_back(segment);
  }
  Duration cost = StepTime(ShapeOf(live)) * faults.factor + faults.delay;
  // All rows are written before any is read, as in a real step. So two writers of a block are
  // found.
  std::vector<std::uint32_t> first_rows;
  for (const Segment& segment : live) {
    first_rows.push_back(slots_.at(segment.slot).committed);
    WriteRows(segment);
  }
  for (std::size_t i = 0; i < live.size(); ++i) {
    PENSTOCK_RETURN_IF_ERROR(CheckContext(live[i], first_rows[i]));
  }
  StepResult result;
  for (const Segment& segment : live) result.sequences.push_back(Answer(segment));
  Falsify(result, faults);
  for (const Segment& segment : live) {
    const std::uint32_t slow = stories_[segment.slot.value()]->script.echo().slow_ms;
    cost = std::max<Duration>(cost, std::chrono::milliseconds(slow));
  }
  free_at_ = (begin - free_at_ <= kLateness ? free_at_ : begin) + cost;
  if (cost > Duration(0)) PENSTOCK_RETURN_IF_ERROR(WaitUntil(free_at_));
  result.timings.forward = SteadyNow() - begin;
  result.memory_bytes = CacheBytes();
  return result;
}

absl::Status SimEngine::Disturb(const StepPlan& plan, const StepFaults& faults) {
  const std::uint64_t step = plan.step.value();
  if (faults.kill) options_.kill();
  if (faults.fail) return absl::InternalError("simshard: step fails as asked");
  if (faults.hang) return WaitUntil(std::nullopt);
  if (step == options_.fail_at_step) {
    return Die("failing at step " + std::to_string(step) + " as asked");
  }
  if (step == options_.hang_at_step) return WaitUntil(std::nullopt);
  return absl::OkStatus();
}

void SimEngine::Falsify(StepResult& result, const StepFaults& faults) const {
  if (!faults.desync && !faults.invalid) return;
  for (SequenceResult& sequence : result.sequences) {
    for (SampledToken& token : sequence.tokens) {
      if (faults.desync) token.token = (token.token + 1) % static_cast<TokenId>(facts_.vocabulary);
      if (faults.invalid) token.token = static_cast<TokenId>(facts_.vocabulary);
    }
  }
}

absl::Status SimEngine::WaitUntil(std::optional<Time> deadline) {
  std::unique_lock lock(mutex_);
  const auto interrupted = [this] { return interrupted_; };
  if (deadline.has_value()) {
    const std::chrono::steady_clock::time_point until(deadline->time_since_epoch());
    interrupted_changed_.wait_until(lock, until, interrupted);
  } else {
    interrupted_changed_.wait(lock, interrupted);
  }
  return interrupted_ ? absl::CancelledError("the shard is stopping") : absl::OkStatus();
}

void SimEngine::ApplyControl(const StepPlan& plan) {
  slots_.Apply(plan);
  for (SlotId slot : plan.ends) stories_[slot.value()].reset();
  for (const SequenceStart& start : plan.starts) {
    EchoScript echo;
    if (tokenizer_ != nullptr) echo = ReadEchoScript(start, *tokenizer_);
    Story story{TokenScript(start, options_.tokens, facts_, std::move(echo)), {}};
    ExtendHashes(slots_.at(start.slot), story);
    stories_[start.slot.value()] = std::move(story);
  }
  for (const BlockOp& op : plan.block_ops) {
    if (op.kind == BlockOp::Kind::kCopy) caches_[op.kv_group].Copy(op.src, op.dst);
  }
}

void SimEngine::ExtendHashes(const RankSequence& sequence, Story& story) const {
  for (std::size_t i = story.hashes.size(); i < sequence.tokens.size(); ++i) {
    const std::uint64_t before =
        i == 0 ? HashText(1, sequence.start.adapter_id) : story.hashes[i - 1];
    // Never 0, which is the content of a position that was not written.
    story.hashes.push_back(MixHash(before, static_cast<std::uint64_t>(sequence.tokens[i])) | 1);
  }
}

void SimEngine::WriteRows(const Segment& segment) {
  RankSequence& sequence = slots_.at(segment.slot);
  const Story& story = *stories_[segment.slot.value()];
  const bool prompt = segment.kind == Segment::Kind::kPrompt;
  if (!prompt && sequence.start.sampling.Candidates() > 0) return;  // not before the choice
  // A decode computes one row: the simulated model never drafts.
  const std::uint32_t rows = prompt ? segment.count : 1;
  for (std::uint32_t i = 0; i < rows; ++i) {
    const std::uint32_t position = sequence.committed + i;
    Write(sequence, position, story.hashes[position]);
  }
  sequence.committed += rows;
}

void SimEngine::Write(const RankSequence& sequence, std::uint32_t position, std::uint64_t hash) {
  for (std::size_t group = 0; group < caches_.size(); ++group) {
    caches_[group].Write(sequence.tables[group], position, hash);
  }
}

absl::Status SimEngine::CheckContext(const Segment& segment, std::uint32_t first_row) {
  const RankSequence& sequence = slots_.at(segment.slot);
  const std::span<const std::uint64_t> hashes(stories_[segment.slot.value()]->hashes);
  for (std::uint32_t group = 0; group < caches_.size(); ++group) {
    PENSTOCK_RETURN_IF_ERROR(
        CheckGroup(sequence, group, hashes.first(sequence.committed), first_row));
  }
  return absl::OkStatus();
}

absl::Status SimEngine::CheckGroup(const RankSequence& sequence, std::uint32_t group,
                                   std::span<const std::uint64_t> hashes, std::uint32_t first_row) {
  const std::uint64_t first = shard::FirstVisible(group == 0 ? 0 : options_.window, first_row);
  const std::int64_t wrong = caches_[group].FindWrong(sequence.tables[group], hashes, first);
  if (wrong < 0) return absl::OkStatus();
  const BlockId block =
      sequence.tables[group][static_cast<std::size_t>(wrong) / options_.block_size];
  return Die("sequence " + std::to_string(sequence.start.sequence.value()) + " reads position " +
             std::to_string(wrong) + " in block " + std::to_string(block.value()) +
             (group == 0 ? "" : " of layers with a window") +
             ", which holds something else than its own prefix");
}

SequenceResult SimEngine::Answer(const Segment& segment) {
  RankSequence& sequence = slots_.at(segment.slot);
  SequenceResult result;
  result.slot = segment.slot;
  result.sequence = sequence.start.sequence;
  const std::uint32_t prompt_length = sequence.start.prompt_length;
  if (segment.kind == Segment::Kind::kPrompt && segment.logits == Segment::Logits::kAll) {
    // Row i gives the token at first + i + 1. The prompt's last row gives the first new token.
    const std::uint32_t end = std::min(segment.first + segment.count + 1, prompt_length);
    for (std::uint32_t p = segment.first + 1; p < end; ++p) {
      result.prompt_logprobs.push_back(SimulatedLogprob(p));
      if (!sequence.start.logprobs.prompt_top_n) continue;
      result.prompt_alternatives.push_back({1, {{sequence.tokens[p], SimulatedLogprob(p)}}});
    }
  }
  // Contrastive search: a prompt finds candidates, a decode chooses and writes one.
  const bool searches = sequence.start.sampling.Candidates() > 0;
  const bool finds = searches && segment.kind == Segment::Kind::kPrompt;
  if (sequence.committed >= prompt_length && !finds) {
    Story& story = *stories_[segment.slot.value()];
    const std::uint32_t fail_at = story.script.echo().fail_at;
    if (fail_at != 0 && sequence.NextOutputIndex() + 1 >= fail_at) {
      sequence.finish = ShardFinish::kError;
      result.error = "echo shard: failing at token " + std::to_string(fail_at) + " as asked";
    } else {
      result.tokens.push_back(Sample(sequence, story));
      if (searches) {
        Write(sequence, sequence.committed, story.hashes[sequence.committed]);
        ++sequence.committed;
      }
    }
  }
  result.committed_length = sequence.committed;
  result.finish = sequence.finish;
  return result;
}

SampledToken SimEngine::Sample(RankSequence& sequence, Story& story) {
  const std::uint32_t index = sequence.NextOutputIndex();
  const bool end_masked = sequence.Generated() < sequence.start.min_new_tokens;
  SampledToken sampled;
  sampled.token = story.script.At(index, end_masked);
  const LogprobRequest& wanted = sequence.start.logprobs;
  if (wanted.kind != LogprobRequest::Kind::kNone) sampled.logprob = SimulatedLogprob(index);
  for (std::uint32_t j = 0; j < wanted.top_n; ++j) {
    const auto token = (static_cast<std::uint32_t>(sampled.token) + j) % facts_.vocabulary;
    sampled.alternatives.push_back(
        {static_cast<TokenId>(token), SimulatedLogprob(index) - static_cast<float>(j)});
  }
  shard::AcceptToken(sequence, sampled.token, facts_.eos_token_ids);
  ExtendHashes(sequence, story);
  return sampled;
}

absl::Status SimEngine::Die(const std::string& why) {
  options_.die(why);
  return absl::InternalError("simshard: " + why);
}

}  // namespace penstock::simshard
