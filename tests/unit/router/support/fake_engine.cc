#include "tests/unit/router/support/fake_engine.h"

#include <algorithm>
#include <utility>

namespace penstock::router::testing {

RequestId FakeEngine::Submit(GenerationRequest request, std::shared_ptr<GenerationSink> sink) {
  const std::lock_guard lock(mutex_);
  const RequestId id(++count_);
  calls_.push_back({id, std::move(request), std::move(sink)});
  if (script) {
    threads_.emplace_back(
        [call = calls_.back(), events = script(calls_.back().request)] { call.Send(events); });
  }
  changed_.notify_all();
  return id;
}

RequestId FakeEngine::Search(GenerationRequest request,
                             std::vector<std::shared_ptr<GenerationSink>> sinks) {
  RequestId first;
  for (auto& sink : sinks) {
    const RequestId id = Submit(request, std::move(sink));
    if (first == RequestId()) first = id;
  }
  return first;
}

ModelFacts FakeEngine::Facts() const { return facts; }

FakeEngine::~FakeEngine() {
  threads_.clear();
  ForgetCalls();
}

void FakeEngine::Render(ChatInput chat, std::function<void(RenderedChat)> done) {
  done(std::move(chat.messages_json));
}

void FakeEngine::Tokenize(std::string text, TokenizeOptions options,
                          std::function<void(TokenizedText)> done) {
  std::vector<TokenSpan> spans;
  for (std::uint32_t i = 0; i < text.size(); ++i) {
    spans.push_back({static_cast<TokenId>(static_cast<unsigned char>(text[i])), i, i + 1});
    if (options.spellings) spans.back().spelling = "[" + text.substr(i, 1) + "]";
  }
  tokenize_options = options;
  done(std::move(spans));
}

void FakeEngine::Embed(EmbedJob job, std::function<void(EmbedResult)> done) {
  std::vector<float> vector(facts.vectors ? facts.vectors->outputs : 0);
  if (vector.size() >= 2) vector[0] = 3, vector[1] = 4;
  Embedded embedded;
  embedded.vectors.assign(job.inputs.size(), vector);
  embedded.tokens = static_cast<std::uint32_t>(job.inputs.size());
  embed_job = std::move(job);
  done(std::move(embedded));
}

void FakeEngine::Detokenize(std::vector<TokenId> ids, std::function<void(DecodedTokens)> done) {
  done(std::string(ids.begin(), ids.end()));
}

void FakeEngine::Cancel(RequestId request) {
  const std::lock_guard lock(mutex_);
  cancelled_.push_back(request);
  changed_.notify_all();
}

HealthReport FakeEngine::CheckHealth() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

void FakeEngine::SetHealth(HealthReport report) {
  const std::lock_guard lock(mutex_);
  health_ = std::move(report);
}

absl::StatusOr<RequestRecord> FakeEngine::Explain(const std::string& id, const std::string& tenant,
                                                  bool admin) const {
  const auto found = records.find(id);
  if (found == records.end() || (found->second.tenant != tenant && !admin))
    return absl::NotFoundError("unknown");
  return found->second;
}

std::optional<FakeEngine::Call> FakeEngine::WaitForCall(std::size_t index) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kPatience, [&] { return calls_.size() > index; })) return {};
  return calls_[index];
}

void FakeEngine::ForgetCalls() {
  std::vector<Call> calls;
  const std::lock_guard lock(mutex_);
  calls.swap(calls_);
}

bool FakeEngine::WaitForCancel(RequestId id) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] {
    return std::find(cancelled_.begin(), cancelled_.end(), id) != cancelled_.end();
  });
}

std::size_t FakeEngine::calls() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

GenerationToken TokenEvent(std::uint32_t index, TokenId id, std::string text, float logprob,
                           bool special) {
  GenerationToken event;
  event.index = index;
  event.delta = special ? "" : text;
  event.token = {id, std::move(text), logprob, special};
  return event;
}

}  // namespace penstock::router::testing
