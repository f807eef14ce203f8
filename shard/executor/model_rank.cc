#include "shard/executor/model_rank.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <type_traits>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "common/time.h"
#include "shard/executor/adapter_loading.h"
#include "shard/executor/rank_facts.h"
#include "shard/executor/warmup_sweep.h"
#include "shard/executor/warmup_table.h"
#include "shard/model/features.h"
#include "shard/parallel/local_communicator.h"
#include "shard/parallel/shm_communicator.h"

namespace penstock::shard {

static_assert(kMaxStepsBegun == kMaxStepsInFlight);

namespace {

// Rows of one Logits call: 64 rows of a vocabulary of 128,000 are 32 MiB.
constexpr std::uint32_t kMaxLogitRows = 64;
// The memory plan before loading assumes the default step of a CPU.
constexpr std::uint32_t kUsualStepTokens = 512;

std::string Stored(const Model& model) {
  const std::optional<DType> stored = model.spec.stored_dtype;
  return stored.has_value() ? "config.json says " + std::string(DTypeName(*stored))
                            : "config.json does not say";
}

v1::LoadProgress Stage(std::string_view stage, std::uint64_t done, std::uint64_t total,
                       Duration spent) {
  v1::LoadProgress report;
  report.set_stage(std::string(stage));
  report.set_bytes_done(done);
  report.set_bytes_total(total);
  const double seconds = std::chrono::duration<double>(spent).count();
  if (done == 0 || seconds <= 0) return report;
  const double rate = static_cast<double>(done) / seconds;
  report.set_bytes_per_second(static_cast<std::uint64_t>(rate));
  report.set_eta_ms(static_cast<std::uint64_t>(static_cast<double>(total - done) / rate * 1000));
  return report;
}

void AddCacheNeeds(const Program& program, const PagedLayout& layout, std::uint32_t step_tokens,
                   std::uint32_t longest, MemoryNeeds& needs) {
  needs.kv_bytes_per_token = layout.GroupBytesPerToken(0);
  needs.hidden_bytes_per_token = layout.HiddenBytesPerToken();
  for (const CacheShape& cache : layout.caches) {
    if (cache.values_in_keys) needs.latent_bytes_per_token += layout.CacheBytesPerToken(cache);
  }
  needs.state_bytes = program.StateBytes();
  if (program.KvGroups() == 1) return;
  v1::Limits limits;
  limits.set_max_step_tokens(step_tokens);
  limits.set_max_decode_rows(1);
  limits.set_max_sequence_length(longest);
  needs.window = program.kv_window;
  needs.window_bytes_per_token = layout.GroupBytesPerToken(1);
  needs.window_bytes =
      MostWindowBlocks(layout, program.kv_window, limits) * layout.GroupBytesPerBlock(1);
}

}  // namespace

ModelRank::ModelRank(ModelRankOptions options) : options_(std::move(options)) {}

// The recorded graphs of the backend refer to the communicator.
ModelRank::~ModelRank() {
  executor_.reset();
  backend_.reset();
}

v1::DescribeResponse ModelRank::Facts() const {
  v1::DescribeResponse facts;
  facts.set_model_id(options_.model.folder);
  facts.set_rank(options_.model.rank);
  facts.set_world_size(options_.model.world);
  facts.set_block_size(options_.block_size);
  facts.set_attention(options_.kv_layout->attention());
  facts.set_bos_token_id(-1);
  if (backend_ == nullptr) return facts;
  const ModelSpec& spec = model_->spec;
  facts.set_model_type(spec.model_type);
  facts.set_dtype(std::string(DTypeName(model_->dtype)));
  facts.set_device(options_.device->Name());
  facts.set_vocabulary(spec.vocabulary);
  facts.mutable_eos_token_ids()->Add(spec.eos_token_ids.begin(), spec.eos_token_ids.end());
  facts.set_bos_token_id(std::max<TokenId>(-1, spec.bos_token_id));
  facts.set_max_position(model_->pooling ? model_->pooling->max_tokens : spec.max_position);
  const Program::Lengths lengths = model_->program.TextLengths();
  facts.set_length_rule(static_cast<v1::LengthRule>(lengths.rule));
  facts.set_original_length(lengths.original);
  AddCacheFacts(model_->program, Layout(), facts);
  facts.set_backend(backend_->Name());
  for (const char* name : {"sampling", "penalties", "logprobs", "prompt_logprobs", "copy"}) {
    facts.add_capabilities(name);
  }
  const Program& program = model_->program;
  if (WhyNot(Feature::kPrefixCache, program).empty()) {
    facts.add_capabilities(program.states.empty() ? "prefix_caching" : "state_snapshots");
  }
  if (WhyNot(Feature::kSpeculation, program).empty()) facts.add_capabilities("speculation");
  if (options_.contrastive_search) facts.add_capabilities("contrastive_search");
  facts.add_capabilities("watermark");
  // Rank 0 has loaded its tokenizer; the other ranks only check that the file exists.
  if (options_.model.rank == 0 ? grammars_ != nullptr : MayOfferGrammars()) {
    facts.add_capabilities("grammar");
  }
  AddAdapterFacts(*backend_, program, adapters_, facts);
  if (model_->pooling) AddPoolingFacts(model_->spec, *model_->pooling, facts);
  facts.set_fingerprint(model_->fingerprint);
  facts.set_parameters(model_->parameters);
  facts.set_weight_bytes(weight_bytes_);
  return facts;
}

absl::StatusOr<RankPlan> ModelRank::Plan() {
  PENSTOCK_ASSIGN_OR_RETURN(Model model, options_.open_model(options_.model));
  model_.emplace(std::move(model));
  PENSTOCK_RETURN_IF_ERROR(CheckOptions());
  PENSTOCK_ASSIGN_OR_RETURN(read_adapters_, ReadAdapters(options_.adapters, *model_));
  options_.kv_layout->Adapt(model_->program);
  PENSTOCK_RETURN_IF_ERROR(CheckOneBlockFits(options_.kv, Layout()));
  weight_bytes_ = model_->WeightBytes();
  if (options_.weight_bytes) {
    PENSTOCK_ASSIGN_OR_RETURN(weight_bytes_, options_.weight_bytes(*model_));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const DeviceMemory memory, options_.device->Memory());
  return RankPlan{Needs(kUsualStepTokens, memory), memory};
}

absl::Status ModelRank::Load(const LoadCallback& progress) {
  progress(Stage("config.json", 0, 0, Duration(0)));
  PENSTOCK_ASSIGN_OR_RETURN(const RankPlan planned, Plan());
  log::Info("computes in " + std::string(DTypeName(model_->dtype)) + " (" + Stored(*model_) + ")" +
            (model_->quantization != Quantization::kNone
                 ? ", weights quantised to " + std::string(QuantizationName(model_->quantization))
                 : "") +
            (model_->kv_type != KvType::kAuto
                 ? ", K/V in " + std::string(KvTypeName(model_->kv_type))
                 : ""));
  if (model_->quantized.matrices > 0) log::Info(DescribeQuantized(*model_));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string plan,
                            DescribeMemoryPlan(planned.needs, planned.memory.free_bytes));
  log::Info(plan);
  if (options_.on_plan) options_.on_plan(plan);
  StartGrammars();
  PENSTOCK_RETURN_IF_ERROR(MakeBackend(progress));
  PENSTOCK_RETURN_IF_ERROR(
      MakeAdapters(options_.adapters, std::exchange(read_adapters_, {}), *backend_, adapters_));
  if (model_->pooling) {
    PENSTOCK_ASSIGN_OR_RETURN(head_, HeadLayers::Load(*model_, options_.model.folder));
  }
  FinishGrammars();
  return absl::OkStatus();
}

// Whether the model has what the options ask for.
absl::Status ModelRank::CheckOptions() const {
  const auto check = [this](bool wanted, Feature feature) {
    if (!wanted) return absl::OkStatus();
    return CheckFeature(feature, model_->spec.model_type, model_->program);
  };
  if (model_->pooling && options_.contrastive_search) {
    return absl::UnimplementedError(
        "`contrastive-search` must be off with a model that gives vectors");
  }
  PENSTOCK_RETURN_IF_ERROR(check(options_.contrastive_search, Feature::kContrastiveSearch));
  PENSTOCK_RETURN_IF_ERROR(options_.kv_layout->Check(*model_));
  PENSTOCK_RETURN_IF_ERROR(check(!options_.adapters.empty(), Feature::kLora));
  PENSTOCK_RETURN_IF_ERROR(check(setup_.limits().max_decode_rows() > 1, Feature::kSpeculation));
  return absl::OkStatus();
}

PagedLayout ModelRank::Layout() const {
  PagedLayout layout{model_->program.caches, options_.block_size, model_->dtype};
  layout.kv_type = model_->kv_type;
  if (options_.contrastive_search) layout.hidden = model_->program.Width(Buffer::kSelected);
  return layout;
}

std::unique_ptr<CachePlan> ModelRank::Cache() const {
  const std::uint32_t sequences = setup_.limits().max_sequences();
  const StatePlan states{model_->program.StateBytes(), sequences, DraftRows(),
                         setup_.limits().max_snapshots()};
  return options_.kv_layout->Plan(Layout(), states,
                                  setup_.limits().window_tables() ? model_->program.kv_window : 0,
                                  {backend_->row_store(), sequences});
}

std::uint32_t ModelRank::DraftRows() const {
  const v1::Limits& limits = setup_.limits();
  if (limits.max_decode_rows() <= 1) return 0;
  const std::uint64_t most = std::uint64_t{limits.max_sequences()} * (limits.max_decode_rows() - 1);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(most, kVerifiedRows - 1));
}

std::uint32_t ModelRank::CandidateRows() const {
  const v1::Limits& limits = setup_.limits();
  const std::uint64_t most = std::uint64_t{limits.max_sequences()} * limits.max_candidates();
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(most, limits.max_step_tokens()));
}

bool ModelRank::MayOfferGrammars() const {
  return options_.grammars && !model_->pooling && !model_->spec.eos_token_ids.empty() &&
         std::filesystem::exists(options_.model.folder + "/tokenizer.json");
}

// The tables of the vocabulary are built while the weights are read.
void ModelRank::StartGrammars() {
  grammars_.reset();
  if (options_.model.rank != 0 || !MayOfferGrammars()) return;
  grammars_ = std::make_unique<GrammarCache>(options_.model.folder, model_->spec.vocabulary,
                                             model_->spec.eos_token_ids);
}

void ModelRank::FinishGrammars() {
  if (grammars_ == nullptr) return;
  const absl::Status ready = grammars_->Ready();
  if (ready.ok()) return;
  log::Warn("grammars are not offered: " + Message(ready));
  grammars_.reset();
}

MemoryNeeds ModelRank::Needs(std::uint32_t step_tokens, const DeviceMemory& memory) const {
  MemoryNeeds needs;
  needs.rank = options_.model.rank;
  needs.local_ranks = memory.ranks;
  needs.auto_share = memory.auto_share;
  needs.limit = memory.limit;
  needs.weight_bytes = weight_bytes_;
  needs.adapter_bytes = AdapterBytes(read_adapters_);
  // On a CPU most buffers are float32, whatever the type of the model.
  const bool cpu = options_.model.device.kind == Device::Kind::kCpu;
  const std::size_t element = cpu ? sizeof(float) : DTypeBytes(model_->dtype);
  needs.scratch_bytes = ScratchBytes(model_->program, step_tokens, kMaxLogitRows, element);
  needs.scratch_step_tokens = step_tokens;
  needs.kv = options_.kv;
  AddCacheNeeds(model_->program, Layout(), step_tokens, model_->spec.max_position, needs);
  // Each candidate has K and V of its own position, in bfloat16, until one is chosen.
  const std::uint64_t candidates = std::uint64_t{CandidateRows()} * 4 / DTypeBytes(model_->dtype);
  needs.scratch_bytes += candidates * Layout().BytesPerToken();
  return needs;
}

absl::Status ModelRank::MakeBackend(const LoadCallback& progress) {
  const Time begin = SteadyNow();
  auto backend = options_.make_backend(
      *model_, [&](std::string_view stage, std::uint64_t done, std::uint64_t total) {
        progress(Stage(stage, done, total, SteadyNow() - begin));
        return !interrupted();
      });
  if (!backend.ok()) return backend.status();
  backend_ = std::move(*backend);
  weight_bytes_ = backend_->MemoryBytes();  // may differ from the plan
  log::Info("backend: " + backend_->Name());
  return absl::OkStatus();
}

absl::StatusOr<ReadyAdapter> ModelRank::ReadAdapter(const std::string& folder) const {
  return LoadAdapter(folder, *model_, *backend_, *options_.device);
}

absl::Status ModelRank::Configure(const v1::ConfigureRequest& setup) {
  setup_ = setup;
  executor_.reset();
  embedder_.reset();
  PENSTOCK_RETURN_IF_ERROR(CheckOptions());
  // Recorded graphs of the former group refer to its communicator.
  if (communicator_ != nullptr) PENSTOCK_RETURN_IF_ERROR(backend_->AllocateCache(0));
  PENSTOCK_RETURN_IF_ERROR(JoinGroup());
  BackendLimits limits;
  limits.max_step_tokens = setup.limits().max_step_tokens();
  limits.max_sequence_length = setup.limits().max_sequence_length();
  limits.max_logit_rows = kMaxLogitRows;
  limits.max_candidate_rows = CandidateRows();
  limits.max_sequences = setup.limits().max_sequences();
  limits.max_draft_rows = DraftRows();
  return backend_->Prepare(limits, communicator_.get());
}

absl::Status ModelRank::JoinGroup() {
  std::shared_ptr<Communicator> control = std::make_shared<LocalCommunicator>();
  if (setup_.world_size() > 1) {
    ShmOptions shm;
    shm.name = setup_.rendezvous();
    shm.rank = static_cast<int>(setup_.rank());
    shm.world = static_cast<int>(setup_.world_size());
    PENSTOCK_ASSIGN_OR_RETURN(control, JoinShmGroup(shm));
  }
  {
    const std::lock_guard lock(communicator_mutex_);
    communicator_.reset();
    control_ = control;
  }
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<Communicator> joined,
                            options_.device->Join(std::move(control)));
  const std::lock_guard lock(communicator_mutex_);
  communicator_ = std::move(joined);
  return interrupted() ? absl::CancelledError("the shard is stopping") : absl::OkStatus();
}

absl::StatusOr<v1::WarmupResponse> ModelRank::Warmup() {
  PENSTOCK_ASSIGN_OR_RETURN(const PoolSize expected, CountPool());
  WarmupShape shape;
  shape.max_step_tokens = setup_.limits().max_step_tokens();
  shape.max_sequences = setup_.limits().max_sequences();
  // A sequence is no longer than the cache can hold, or the warm-up would take more memory than
  // serving does. Rank 0 decides, so that all ranks run the same steps.
  shape.max_sequence_length = Cache()->LongestSequence(expected, setup_.limits());
  PENSTOCK_RETURN_IF_ERROR(
      control_->Broadcast(&shape.max_sequence_length, sizeof shape.max_sequence_length, 0));
  shape.block_size = options_.block_size;
  shape.max_logit_rows = kMaxLogitRows;
  shape.max_candidates = setup_.limits().max_candidates();
  shape.max_candidate_rows = CandidateRows();
  if (model_->program.KvGroups() > 1) shape.window_blocks = expected.blocks[1];
  options_.kv_layout->LimitWarmup(expected, shape);
  shape.states = !model_->program.states.empty();
  WarmupControl control;
  control.continues = [this] { return !interrupted(); };
  control.agree = [this](bool mine) -> absl::StatusOr<bool> {
    std::uint8_t answer = mine ? 1 : 0;
    PENSTOCK_RETURN_IF_ERROR(control_->Broadcast(&answer, sizeof answer, 0));
    return answer != 0;
  };
  const Time begin = SteadyNow();
  const bool keeps = setup_.rank() == 0;
  const WarmupTable table(keeps ? options_.table_folder : "", TableIdentity(shape));
  control.kept = table.Read();
  PENSTOCK_RETURN_IF_ERROR(ShareTable(control.kept));
  if (keeps) {
    log::Info(control.kept.empty()
                  ? "warm-up: times steps for about " +
                        std::to_string(kWarmupTime / std::chrono::seconds(1)) +
                        " s, longer for a large model or on a busy machine"
                  : "warm-up: checks the step times that an earlier start measured");
  }
  std::size_t left_out = 0;
  control.on_left_out = [&left_out](std::size_t steps) { left_out = steps; };
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<StepTimeSample> step_times,
                            RunWarmup(shape, *backend_, control));
  const bool held = !control.kept.empty() && step_times == control.kept;
  if (!held) table.Write(step_times);
  const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(SteadyNow() - begin);
  log::Info("warm-up: " + std::to_string(step_times.size()) +
            (held                   ? " step times of an earlier start confirmed in "
             : control.kept.empty() ? " step times measured in "
                                    : " step times measured again (earlier ones differ) in ") +
            std::to_string(spent.count()) + " ms" +
            (left_out == 0 ? ""
                           : "; " + std::to_string(left_out) +
                                 " others were left out for time and are extrapolated"));
  v1::WarmupResponse report;
  for (const StepTimeSample& sample : step_times) AddStepTime(sample, report);
  report.set_peak_memory_bytes(backend_->MemoryBytes());
  // Frees the small cache. The free memory now tells how large the real cache can be.
  PENSTOCK_RETURN_IF_ERROR(backend_->AllocateCache(0));
  PENSTOCK_ASSIGN_OR_RETURN(const PoolSize fits, CountPool());
  for (std::uint32_t group = 0; group < model_->program.KvGroups(); ++group) {
    report.add_blocks(fits.blocks[group]);
  }
  report.set_cells(fits.cells);
  report.set_snapshots(fits.snapshots);
  return report;
}

std::string ModelRank::TableIdentity(const WarmupShape& shape) const {
  std::string text = model_->fingerprint + " " + backend_->Name() + " world " +
                     std::to_string(setup_.world_size()) + options_.kv_layout->table_suffix();
  for (const std::uint64_t number :
       {std::uint64_t{shape.max_step_tokens}, std::uint64_t{setup_.limits().max_sequences()},
        std::uint64_t{setup_.limits().max_sequence_length()}, std::uint64_t{shape.block_size},
        std::uint64_t{shape.max_candidates}}) {
    text += " " + std::to_string(number);
  }
  return text + " " + options_.machine;
}

absl::Status ModelRank::ShareTable(std::vector<StepTimeSample>& samples) {
  constexpr std::size_t kMost = 256;
  struct {
    std::uint64_t count = 0;
    std::array<StepTimeSample, kMost> samples{};
  } table;
  static_assert(std::is_trivially_copyable_v<decltype(table)>);
  table.count = std::min(samples.size(), kMost);
  std::copy_n(samples.begin(), table.count, table.samples.begin());
  PENSTOCK_RETURN_IF_ERROR(control_->Broadcast(&table, sizeof table, 0));
  samples.assign(table.samples.begin(), table.samples.begin() + table.count);
  return absl::OkStatus();
}

absl::StatusOr<PoolSize> ModelRank::CountPool() const {
  const v1::Limits& limits = setup_.limits();
  PENSTOCK_ASSIGN_OR_RETURN(const DeviceMemory memory, options_.device->Memory());
  MemoryNeeds needs = Needs(limits.max_step_tokens(), memory);
  if (limits.kv_cache_bytes() > 0) needs.kv = {limits.kv_cache_bytes(), 0.0};
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t bytes,
                            ChooseKvBytes(needs, memory.free_bytes, Cache()->WantedBytes(limits)));
  PENSTOCK_ASSIGN_OR_RETURN(PoolSize pool, Cache()->Fit(bytes, limits));
  if (!model_->pooling) return pool;
  for (std::uint32_t& blocks : pool.blocks.by_group) blocks = std::min(blocks, TextBlocks());
  return pool;
}

// Room for a step of many texts, or for the longest one.
std::uint32_t ModelRank::TextBlocks() const {
  const v1::Limits& limits = setup_.limits();
  const std::uint32_t size = options_.block_size;
  const std::uint32_t of_step = limits.max_step_tokens() / size + limits.max_sequences();
  return std::max(of_step, (limits.max_sequence_length() + size - 1) / size);
}

void ModelRank::MakeEmbedder(const PoolSize& pool) {
  if (!model_->pooling) return;
  const v1::Limits& limits = setup_.limits();
  EmbedderOptions options;
  options.pooling = model_->pooling->kind;
  options.whole_texts = model_->spec.both_ways;
  options.width = model_->program.OutputWidth();
  options.max_step_tokens = limits.max_step_tokens();
  options.max_texts = limits.max_sequences();
  options.max_tokens = limits.max_sequence_length();
  options.max_logit_rows = kMaxLogitRows;
  options.blocks = pool.blocks[0];
  options.block_size = options_.block_size;
  embedder_ = std::make_unique<TextEmbedder>(options, head_, *backend_);
}

absl::StatusOr<std::vector<std::vector<float>>> ModelRank::Embed(std::span<const EmbedText> texts) {
  if (embedder_ == nullptr) return RankEngine::Embed(texts);
  return embedder_->Embed(texts);
}

absl::StatusOr<std::uint64_t> ModelRank::Commit(const PoolSize& pool) {
  const Time began = SteadyNow();
  PENSTOCK_RETURN_IF_ERROR(backend_->SetCells(pool.cells, setup_.limits().max_sequences()));
  PENSTOCK_RETURN_IF_ERROR(backend_->SetSnapshots(pool.snapshots));
  PENSTOCK_RETURN_IF_ERROR(options_.prefault_all ? backend_->AllocateCache(pool.blocks)
                                                 : backend_->AllocateServingCache(pool.blocks));
  ExecutorOptions options;
  options.slots = setup_.limits().max_sequences();
  options.kv_groups = model_->program.KvGroups();
  options.window_tables = setup_.limits().window_tables();
  options.vocabulary = model_->spec.vocabulary;
  options.eos_token_ids = model_->spec.eos_token_ids;
  options.max_logit_rows = kMaxLogitRows;
  options.grammars = grammars_.get();
  options.adapters = &adapters_;
  options.late_masks = setup_.limits().late_masks();
  options.forced_tokens = setup_.limits().forced_tokens();
  options.watermark = options_.watermark;
  if (setup_.world_size() <= 1) {
    options.device_sampler = dynamic_cast<DeviceSampler*>(backend_.get());
  }
  executor_ = std::make_unique<ModelExecutor>(std::move(options), *backend_, *control_,
                                              communicator_.get());
  MakeEmbedder(pool);
  log::Info("KV cache: " + Cache()->Describe(pool) + ", allocated in " +
            std::to_string((SteadyNow() - began) / std::chrono::milliseconds(1)) + " ms");
  return Cache()->Bytes(pool);
}

void ModelRank::Interrupt() {
  interrupted_ = true;
  const std::lock_guard lock(communicator_mutex_);
  if (control_ != nullptr) control_->Abort();
  if (communicator_ != nullptr) communicator_->Abort();
}

}  // namespace penstock::shard
