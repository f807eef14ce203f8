#include "router/dispatch/grammar_checker.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "common/status.h"
#include "common/thread_name.h"
#include "common/thread_priority.h"
#include "router/dispatch/grammar_trial.h"

namespace penstock::router {
namespace {

GrammarRefusal Busy() { return {true, "too many grammars are being checked"}; }

// Texts of the grammar engine that name its own options, and what a client can do about them.
constexpr std::pair<std::string_view, std::string_view> kRewordings[] = {
    {"oneOf constraints are not supported. Enable 'coerce_one_of' option to approximate oneOf with "
     "anyOf",
     "`oneOf` is supported only where its alternatives exclude each other; use `anyOf`"},
    {"Only absolute $ref's (#/...) are supported without 'referencing' feature; ref",
     "`$ref` must lead to a part of the schema, `#/...`. Given:"},
    {"Unimplemented keys:", "keywords that are not supported:"},
    {"Unknown format:", "`format` is not known:"},
};

GrammarRefusal NotValid(const absl::Status& status, std::string field) {
  std::string name = field == "grammar" ? field : "`" + field + "`";
  std::string text = std::move(name) + " is not valid: " + Message(status);
  for (const auto& [from, to] : kRewordings) {
    if (const std::size_t at = text.find(from); at != text.npos) text.replace(at, from.size(), to);
  }
  return {false, std::move(text), std::move(field)};
}

// What made the grammar: "grammar", the one part of a body, or the list that holds all parts.
std::string FieldOf(const Grammar& grammar) {
  if (grammar.parts.empty()) return "grammar";
  const std::string& first = grammar.parts.front().field;
  return grammar.parts.size() == 1 ? first : first.substr(0, first.find('['));
}

}  // namespace

GrammarChecker::GrammarChecker(std::shared_ptr<const text::Tokenizer> tokenizer, std::uint32_t rows,
                               std::vector<TokenId> eos_ids)
    : eos_ids_(std::move(eos_ids)),
      vocabulary_(std::async(std::launch::async, [this, tokenizer = std::move(tokenizer), rows] {
        return text::Vocabulary::Create(*tokenizer, rows, eos_ids_,
                                        text::Vocabulary::Tables::kPlain);
      })) {
  for (std::size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Run(); });
}

GrammarChecker::~GrammarChecker() { Stop(); }

std::optional<GrammarVerdict> GrammarChecker::Known(const Grammar& grammar) {
  const std::lock_guard lock(mutex_);
  return verdicts_.Find(grammar.source);
}

GrammarChecker::Job* GrammarChecker::Find(const Grammar& grammar) {
  if (grammar.source.empty()) return nullptr;
  const auto same = [&grammar](const auto& job) { return job->grammar.source == grammar.source; };
  if (const auto found = std::ranges::find_if(running_, same); found != running_.end()) {
    return found->get();
  }
  const auto found = std::ranges::find_if(queue_, same);
  return found == queue_.end() ? nullptr : found->get();
}

void GrammarChecker::Check(Grammar grammar, Time arrived, std::shared_ptr<GrammarWaiter> waiter) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    if (Job* same = Find(grammar)) return same->waiting.push_back({std::move(waiter), arrived});
    if (queue_.size() < kQueue) {
      auto job = std::make_shared<Job>();
      job->grammar = std::move(grammar);
      job->waiting.push_back({std::move(waiter), arrived});
      queue_.push_back(std::move(job));
    }
  }
  if (waiter != nullptr) return waiter->OnVerdict(Busy());
  changed_.notify_one();
}

void GrammarChecker::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    queue_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool GrammarChecker::IsWanted(const Job& job, Time now) {
  return std::ranges::any_of(job.waiting, [now](const Waiting& each) {
    return each.arrived + kQueueLimit > now && each.waiter->Waits();
  });
}

GrammarVerdict GrammarChecker::Judge(const Grammar& grammar) const {
  const CpuLimit limit;
  Grammar::Written written = grammar.write();
  if (auto* wrong = std::get_if<std::string>(&written)) {
    return GrammarRefusal{false, std::move(*wrong)};
  }
  auto spec = std::get<GrammarSpec>(std::move(written));
  if (spec.source.empty()) return spec;  // allows every output, as in TGI
  const Vocabulary& vocabulary = vocabulary_.get();
  const absl::Status status =
      vocabulary.ok() ? TryGrammar(**vocabulary, eos_ids_, spec, limit) : vocabulary.status();
  if (status.ok()) return spec;
  for (const Grammar::Part& part : grammar.parts) {
    if (!vocabulary.ok() || limit.IsUsedUp()) break;
    const auto compiled = (*vocabulary)->Compile(part.spec, {});
    if (!compiled.ok()) return NotValid(compiled.status(), part.field);
  }
  return NotValid(status, FieldOf(grammar));
}

void GrammarChecker::Run() {
  NameThread("grammar");
  UseBackgroundPriority();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const std::shared_ptr<Job> job = std::move(queue_.front());
    queue_.pop_front();
    GrammarVerdict verdict = Busy();
    if (IsWanted(*job, SteadyNow())) {
      running_.push_back(job);
      lock.unlock();
      verdict = Judge(job->grammar);
      lock.lock();
      std::erase(running_, job);
      verdicts_.Keep(std::move(job->grammar.source), verdict);
    }
    const bool tell = !stopping_;
    lock.unlock();
    for (const Waiting& each : job->waiting) {
      if (tell) each.waiter->OnVerdict(verdict);
    }
    job->waiting.clear();
    lock.lock();
  }
}

}  // namespace penstock::router
