#include "router/main/app.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "common/exit_codes.h"
#include "common/free_memory.h"
#include "common/log.h"
#include "common/open_files.h"
#include "common/status.h"
#include "common/version.h"
#include "router/answer/format.h"
#include "router/api/audit_log.h"
#include "router/api/http_service.h"
#include "router/dispatch/generation_service.h"
#include "router/dispatch/group_fleet.h"
#include "router/http/memory_bound.h"
#include "router/main/access_files.h"
#include "router/main/chat_source.h"
#include "router/main/process_events.h"
#include "router/main/settings.h"
#include "router/main/shard_addresses.h"
#include "router/main/vector_files.h"
#include "router/metrics/metrics.h"
#include "router/metrics/process_metrics.h"
#include "router/rank/rank_model.h"
#include "router/telemetry/otlp_exporter.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace penstock::router {
namespace {

// How long the last responses may take after the shards are lost.
constexpr Duration kLostDrain = std::chrono::seconds(2);

struct Failure {
  int exit_code;
  absl::Status status;
};

// The format that --tool-format names, or that the chat template writes.
const answer::Format& FormatOf(const options::Values& values, const ChatSource& source) {
  const std::string& name = values.GetString("tool-format");
  if (const answer::Format* named = answer::FindFormat(name)) return *named;
  const answer::Format& found = answer::DetectFormat(source.with_tools.value_or(source.plain));
  const std::string text = "tool calls and reasoning: --tool-format auto found ";
  if (&found == &answer::NoFormat()) {
    log::Debug(text + std::string(found.name));
  } else {
    log::Info(text + std::string(found.name));
  }
  return found;
}

// The special tokens in the markers of the format.
answer::SpecialTokens SpecialTokensIn(const answer::Format& format,
                                      const text::Tokenizer& tokenizer) {
  std::map<TokenId, std::string> found;
  for (const std::string& marker : answer::MarkersOf(format)) {
    const auto ids = tokenizer.Encode(marker, false);
    if (!ids.ok()) continue;
    for (const TokenId id : *ids) {
      if (tokenizer.IsSpecial(id)) found.emplace(id, tokenizer.Token(id).value_or(""));
    }
  }
  answer::SpecialTokens tokens;
  for (auto& [id, text] : found) tokens.push_back({std::move(text), id});
  return tokens;
}

bool ShowsReasoning(const answer::Format& format, std::string_view chat_template) {
  return std::ranges::any_of(format.reasoning, [&](const answer::ReasoningMarkers& markers) {
    return chat_template.find(markers.open) != chat_template.npos ||
           chat_template.find(markers.close) != chat_template.npos;
  });
}

class App {
 public:
  App(const options::Values& values, const Notifier& notifier)
      : values_(values), notifier_(notifier), metrics_(Version()) {}

  int Run();

 private:
  std::optional<Failure> LoadAccess();
  std::optional<Failure> LoadRanks();
  std::optional<Failure> LoadText();
  std::optional<Failure> FormGroups();
  std::optional<Failure> StartEngine();
  std::optional<Failure> CheckOutputs();
  std::optional<Failure> StartTraces();
  std::optional<Failure> OpenAudit();
  std::optional<Failure> StartHttp();
  void ReadAgain();
  void SayMemoryBound(const HttpOptions& http, const MemoryLimit& limit) const;
  absl::Status TryChat() const;
  int Check();
  int Report(const Failure& failure);
  int Serve();
  void Stop();
  void OnLost(LostGroup lost);
  bool IsLost();

  const options::Values& values_;
  const Notifier& notifier_;
  bool groups_return_ = false;
  std::size_t groups_ = 0;
  std::string first_shard_;  // address of the first group's rank 0
  bool template_has_tools_ = false;
  bool template_has_developer_ = false;
  const answer::Format* answer_format_ = &answer::NoFormat();
  bool reasons_ = false;  // its template shows markers of reasoning
  ProcessEvents events_;
  Metrics metrics_;
  AccessFiles access_{values_, metrics_};
  std::shared_ptr<const RankModel> ranks_;  // null: there is none
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::shared_ptr<const text::ChatTemplate> chat_;
  absl::Status no_chat_;               // why chat_ is null
  std::unique_ptr<GroupFleet> fleet_;  // outlives the engine, which returns lost links to it
  std::unique_ptr<GenerationService> engine_;
  std::shared_ptr<OtlpExporter> traces_;  // null: traces are off
  std::shared_ptr<AuditLog> audit_;       // null: there is none
  std::unique_ptr<HttpService> http_;     // destroyed before the engine, which it uses

  std::mutex mutex_;
  std::string lost_;  // under mutex_
};

std::optional<Failure> App::LoadAccess() {
  if (const absl::Status read = access_.Load(); !read.ok()) return Failure{kExitUsage, read};
  if (access_.any()) events_.OnHangup([this] { ReadAgain(); });
  return std::nullopt;
}

std::optional<Failure> App::LoadRanks() {
  const std::string& path = values_.GetString("rank-model");
  if (path.empty() || values_.GetString("order") != "learned") return std::nullopt;
  auto ranks = RankModel::Load(path);
  if (!ranks.ok()) return Failure{kExitUsage, WithContext(ranks.status(), "--rank-model")};
  ranks_ = std::make_shared<const RankModel>(*std::move(ranks));
  return std::nullopt;
}

std::optional<Failure> App::LoadText() {
  const std::string& folder = values_.GetString("model-id");
  auto tokenizer = text::Tokenizer::Load(folder);
  if (!tokenizer.ok()) {
    return Failure{kExitModel, WithContext(tokenizer.status(), "--model-id " + folder)};
  }
  tokenizer_ = *std::move(tokenizer);
  const auto source = FindChatSource(*tokenizer_, values_.GetString("tokenizer-config-path"));
  if (absl::IsInvalidArgument(source.status())) return Failure{kExitUsage, source.status()};
  no_chat_ = source.status();
  if (source.ok()) {
    answer_format_ = &FormatOf(values_, *source);
    reasons_ = ShowsReasoning(*answer_format_, source->plain);
    template_has_tools_ = source->plain.find("tools") != std::string::npos;
    template_has_developer_ = source->plain.find("developer") != std::string::npos;
    auto chat = text::ChatTemplate::With(*tokenizer_, source->plain, source->with_tools);
    no_chat_ = chat.status();
    if (chat.ok()) chat_ = *std::move(chat);
  }
  if (!no_chat_.ok())
    log::Warn("chats are refused: " + Message(no_chat_) +
              "; --tokenizer-config-path gives another template");
  return std::nullopt;
}

std::optional<Failure> App::FormGroups() {
  auto options = FleetSettings(values_, notifier_.active());
  if (!options.ok()) return Failure{kExitUsage, options.status()};
  groups_return_ = options->reattach;
  groups_ = options->groups.size();
  first_shard_ = options->groups.front().sockets.front();
  fleet_ = std::make_unique<GroupFleet>(*std::move(options), metrics_);
  absl::Status outcome;  // written before the event is signalled
  fleet_->Start([&](const absl::Status& status) {
    outcome = status;
    events_.Say();
  });
  if (events_.Wait() == ProcessEvents::What::kSignal) {
    fleet_->Stop();
    log::Info("stopped before the shards were ready");
    return Failure{kExitOk, absl::OkStatus()};
  }
  if (outcome.ok()) return std::nullopt;
  // The shards stay up if the cache does not fit the limits.
  return Failure{absl::IsResourceExhausted(outcome) ? kExitMemory : kExitShardLost, outcome};
}

std::optional<Failure> App::StartEngine() {
  const GroupFormed formed = fleet_->Agreed();
  auto facts = FactsOf(values_, formed);
  if (!facts.ok()) return Failure{kExitUsage, facts.status()};
  const std::string shorter = ShortContextWarning(values_, formed);
  if (!shorter.empty()) log::Warn(shorter);
  GenerationServiceOptions options;
  options.core = CoreSettings(values_, formed);
  // The bits of a Python model may depend on the batch, so its requests cannot continue elsewhere.
  const bool exact = values_.GetString("engine") != "transformers";
  if (!groups_return_ || !exact) options.core.scheduler.recovery_timeout = Duration(0);
  options.text_threads = static_cast<std::uint32_t>(values_.GetInt("validation-workers"));
  options.stream_interval = values_.GetDuration("stream-interval");
  if (const auto seed = values_.FindInt("seed")) options.seed = static_cast<std::uint64_t>(*seed);
  options.facts = *std::move(facts);
  if (auto& vectors = options.facts.vectors) {
    const absl::Status read = AddVectorFiles(values_.GetString("model-id"), *vectors);
    if (!read.ok()) return Failure{kExitModel, read};
  }
  options.facts.has_chat_template = chat_ != nullptr;
  options.facts.template_has_tools = template_has_tools_;
  options.facts.template_has_developer = template_has_developer_;
  options.grammars = !values_.GetBool("disable-grammar-support");
  options.show_requests = formed.facts.Has("shows-requests");
  metrics_.AddTgiNames(options.facts.max_input_tokens, options.facts.max_total_tokens,
                       formed.capacity.block_size, DialectSettings(values_).tgi_only);
  if (values_.GetBool("vllm-metrics")) {
    metrics_.AddVllmNames(options.facts.served_name, formed.capacity.block_size);
  }
  options.ranks = ranks_;
  options.block_size = formed.capacity.block_size;
  options.eos_ids = formed.facts.eos_token_ids;
  options.tokenizer = tokenizer_;
  options.chat = chat_;
  options.drop_volatile_lines = values_.GetBool("drop-volatile-lines");
  options.prompt_history = static_cast<std::uint32_t>(values_.GetInt("prompt-history"));
  options.groups_return = groups_return_;
  options.embed = EmbedSettings(values_, formed);
  options.health_probe.idle = values_.GetDuration("health-probe-idle");
  engine_ = std::make_unique<GenerationService>(std::move(options), metrics_);
  const absl::Status started = engine_->Start([this](LostGroup lost) { OnLost(std::move(lost)); });
  if (!started.ok()) return Failure{kExitUsage, started};
  fleet_->Serve([this](std::unique_ptr<GroupLink> link) { engine_->Attach(std::move(link)); });
  return std::nullopt;
}

std::optional<Failure> App::StartTraces() {
  const auto options = OtlpSettings(values_, engine_->Facts());
  if (!options.ok()) return Failure{kExitUsage, options.status()};
  if (!options->endpoint.empty()) traces_ = std::make_shared<OtlpExporter>(*options, metrics_);
  return std::nullopt;
}

std::optional<Failure> App::OpenAudit() {
  const std::string& path = values_.GetString("audit-log");
  if (path.empty()) return std::nullopt;
  auto log = std::make_shared<AuditLog>();
  if (const absl::Status opened = log->Open(path); !opened.ok()) {
    return Failure{kExitUsage, opened};
  }
  audit_ = std::move(log);
  return std::nullopt;
}

// After SIGHUP.
void App::ReadAgain() {
  access_.ReadAgain();
  if (audit_ == nullptr) return;
  if (const absl::Status opened = audit_->OpenAgain(); !opened.ok()) log::Error(Message(opened));
}

std::optional<Failure> App::StartHttp() {
  HttpOptions options = HttpSettings(values_);
  if (audit_ != nullptr) {
    options.audit = [log = audit_](const AnswerRecord& answer) { log->Write(answer); };
  }
  options.tls = access_.tls();
  ApiOptions api = ApiSettings(values_);
  api.spans = traces_;
  api.keys = access_.keys();
  api.answer_format = answer_format_;
  api.reasons = reasons_;
  api.special_tokens = SpecialTokensIn(*answer_format_, *tokenizer_);
  const DialectOptions dialects = DialectSettings(values_);
  if (dialects.tgi_only) {
    api.connect_error = [address = first_shard_] { return ConnectError(address); };
  }
  // Without /proc nothing is known, and the defaults stay.
  const MemoryLimit limit = LimitOfMemory().value_or(MemoryLimit());
  FitMemory(options, limit);
  SayMemoryBound(options, limit);
  http_ = std::make_unique<HttpService>(options, std::move(api), dialects, *engine_, metrics_);
  const auto port = http_->Start();
  if (!port.ok()) return Failure{kExitAddress, port.status()};
  const bool is_ipv6 = options.host.find(':') != std::string::npos;
  const std::string host = is_ipv6 ? "[" + options.host + "]" : options.host;
  const std::string address = host + ":" + std::to_string(*port);
  log::Info("listening on " + std::string(access_.tls() == nullptr ? "" : "https://") + address);
  notifier_.Ready(address);
  return std::nullopt;
}

void App::SayMemoryBound(const HttpOptions& http, const MemoryLimit& limit) const {
  const GroupFormed formed = fleet_->Agreed();
  MemoryTerms terms;
  terms.resident = ResidentBytes();
  terms.requests = static_cast<std::uint32_t>(values_.GetInt("max-concurrent-requests"));
  terms.max_total_tokens = engine_->Facts().max_total_tokens;
  terms.text_threads = static_cast<std::uint32_t>(values_.GetInt("validation-workers"));
  terms.cache_blocks = std::uint64_t{formed.capacity.blocks} * groups_;
  terms.limit = limit;
  const MemoryBound most = BoundMemory(http, terms);
  const std::string bound = "memory of the router: " + most.Describe();
  log::Info(bound);
  log::Debug("memory of the router: the sum is " + most.DescribeTerms());
  const std::string warning = most.Warning();
  if (!warning.empty()) log::Warn("memory of the router: " + warning);
  notifier_.MemoryPlan(bound);
}

// On the core's thread.
void App::OnLost(LostGroup lost) {
  const bool still_ready = engine_->CheckHealth().state == Health::kReady;
  log::Error(lost.reason +
             (still_ready ? "; the other groups still serve" : "; /health answers 503"));
  notifier_.GroupLost(lost.group.value(), lost.reason);
  if (!groups_return_) {
    {
      const std::lock_guard lock(mutex_);
      lost_ = lost.reason;
    }
    events_.Say();
  }
  fleet_->Lost(std::move(lost.link));
}

bool App::IsLost() {
  const std::lock_guard lock(mutex_);
  return !lost_.empty();
}

// Checked before shards load for minutes.
std::optional<Failure> App::CheckOutputs() {
  if (const auto files = CheckLogFiles(values_); !files.ok()) return Failure{kExitUsage, files};
  const auto options = OtlpSettings(values_, ModelFacts());
  if (!options.ok()) return Failure{kExitUsage, options.status()};
  return std::nullopt;
}

// A chat template with a wrong name or filter compiles, and fails when it is used.
absl::Status App::TryChat() const {
  if (absl::IsNotFound(no_chat_)) return absl::OkStatus();  // the model is for completions
  if (!no_chat_.ok()) return WithContext(no_chat_, "the chat template cannot be used");
  const absl::Status tried =
      chat_->Render({.messages_json = R"([{"role":"user","content":"Hello"}])"}).status();
  return WithContext(tried, "the chat template fails for one message of a user");
}

// Checks everything that needs no shards.
int App::Check() {
  const bool chat = values_.GetBool("check-chat");
  std::optional<Failure> failure = CheckOutputs();
  if (!failure) failure = LoadAccess();
  if (!failure) failure = LoadRanks();
  if (const auto fleet = FleetSettings(values_, notifier_.active()); !failure && !fleet.ok()) {
    failure = Failure{kExitUsage, fleet.status()};
  }
  if (!failure && (chat || !values_.GetString("tokenizer-config-path").empty())) {
    failure = LoadText();
  }
  if (const auto tried = !failure && chat ? TryChat() : absl::OkStatus(); !tried.ok()) {
    failure = Failure{kExitModel, tried};
  }
  if (!failure) return kExitOk;
  std::puts(Message(failure->status).c_str());
  return failure->exit_code;
}

int App::Report(const Failure& failure) {
  if (failure.status.ok()) return failure.exit_code;
  notifier_.Failed(Message(failure.status));
  return failure.exit_code;
}

// Stops the fleet, then the engine, then sends the last traces.
void App::Stop() {
  fleet_->Stop();
  engine_->Stop();
  if (traces_ != nullptr) traces_->Stop();
}

int App::Serve() {
  const bool lost = events_.Wait() == ProcessEvents::What::kWord;
  if (lost || IsLost()) {  // the launcher may have seen the loss and sent its signal first
    http_->Stop(kLostDrain);
    Stop();
    const std::lock_guard lock(mutex_);
    return Report({kExitShardLost, absl::UnavailableError(lost_)});
  }
  const Time until = SteadyNow() + values_.GetDuration("graceful-termination-timeout");
  const std::size_t open = engine_->Drain([this] { events_.Say(); });
  log::Info("stopping: " +
            (open == 0
                 ? "no request is open"
                 : "waiting for " + std::to_string(open) + (open == 1 ? " request" : " requests") +
                       " to end, at most " + values_.TextOf("graceful-termination-timeout") +
                       " (--graceful-termination-timeout); Ctrl-C or SIGTERM again stops at once"));
  // Until then /health and new requests get 503 with Retry-After. A second signal ends the process.
  const bool hurry = events_.Wait(until) == ProcessEvents::What::kSignal;
  http_->Stop(hurry ? Duration(0) : std::max(until - SteadyNow(), Duration(0)));
  Stop();
  log::Info("stopped");
  return hurry ? kExitFailure : kExitOk;
}

int App::Run() {
  if (values_.GetBool("check") || values_.GetBool("check-chat")) return Check();
  for (const std::string& warning : NoEffectWarnings(values_)) log::Warn(warning);
  const std::string files = OpenFilesWarning(HttpSettings(values_), RaiseOpenFiles());
  if (!files.empty()) log::Warn(files);
  using Step = std::optional<Failure> (App::*)();
  for (const Step step :
       {&App::CheckOutputs, &App::OpenAudit, &App::LoadAccess, &App::LoadRanks, &App::LoadText,
        &App::FormGroups, &App::StartEngine, &App::StartTraces, &App::StartHttp}) {
    if (const auto failure = (this->*step)()) return Report(*failure);
  }
  return Serve();
}

}  // namespace

int RunRouter(const options::Values& values, const Notifier& notifier) {
  return App(values, notifier).Run();
}

}  // namespace penstock::router
