#include "router/dispatch/grammar_checker.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "common/status.h"
#include "text/grammar.h"

namespace penstock::router {
namespace {

constexpr int kSeats = 2;
constexpr int kNice = 5;
constexpr int kFollowedTokens = 400;
constexpr int kFollowedOutputs = 10;

std::chrono::nanoseconds CpuTime() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

absl::Status TooSlow() {
  return absl::ResourceExhaustedError(
      "it takes more than " + std::to_string(GrammarChecker::kCpuLimit.count()) +
      " ms to compile and to follow for " + std::to_string(kFollowedTokens) + " tokens");
}

// A token of the mask that is not among `ends`, the first one behind a place that `draw` chooses.
std::optional<TokenId> Choose(const std::vector<std::uint32_t>& mask, std::uint32_t rows,
                              std::uint64_t draw, const std::vector<TokenId>& ends) {
  for (std::uint32_t i = 0; i < rows; ++i) {
    const auto token = static_cast<std::uint32_t>((draw + i) % rows);
    if (((mask[token / 32] >> (token % 32)) & 1) == 0) continue;
    const auto id = static_cast<TokenId>(token);
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) return id;
  }
  return std::nullopt;
}

// Outputs of tokens that look random and are the same each time.
absl::Status Follow(const text::CompiledGrammar& grammar, std::uint32_t rows,
                    const std::vector<TokenId>& ends) {
  PENSTOCK_ASSIGN_OR_RETURN(auto matcher, grammar.Start());
  std::vector<std::uint32_t> mask(text::MaskWords(rows));
  std::uint64_t draw = 0;
  int outputs = 1;
  for (int i = 0; i < kFollowedTokens; ++i) {
    PENSTOCK_RETURN_IF_ERROR(matcher->Mask(mask));
    if (CpuTime() > GrammarChecker::kCpuLimit) return TooSlow();
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    const std::optional<TokenId> token = Choose(mask, rows, draw >> 33, ends);
    if (!token && outputs++ == kFollowedOutputs) return absl::OkStatus();
    if (!token) {
      PENSTOCK_ASSIGN_OR_RETURN(matcher, grammar.Start());
      continue;
    }
    PENSTOCK_RETURN_IF_ERROR(matcher->Accept({&*token, 1}));
  }
  return absl::OkStatus();
}

struct Verdict {
  GrammarSpec spec;
  absl::Status status;
};

}  // namespace

struct GrammarChecker::State {
  using Vocabulary = absl::StatusOr<std::shared_ptr<const text::Vocabulary>>;
  // One check, shared by its thread and whoever waits for it.
  struct Run {
    std::optional<absl::Status> status;
  };

  std::vector<TokenId> ends;
  std::uint32_t rows = 0;

  std::mutex mutex;
  std::condition_variable changed;  // a seat is free, or a check has ended
  int seats = kSeats;
  std::list<Verdict> verdicts;  // the latest first
  std::size_t cached_bytes = 0;

  std::shared_future<Vocabulary> vocabulary;

  // With the lock.
  std::optional<absl::Status> Find(const GrammarSpec& spec) {
    const auto found = std::find_if(verdicts.begin(), verdicts.end(),
                                    [&spec](const Verdict& v) { return v.spec == spec; });
    if (found == verdicts.end()) return std::nullopt;
    verdicts.splice(verdicts.begin(), verdicts, found);
    return verdicts.front().status;
  }

  // With the lock.
  void Keep(const GrammarSpec& spec, const absl::Status& status) {
    if (spec.source.size() > kCachedBytes / 8) return;
    cached_bytes += spec.source.size();
    verdicts.push_front({spec, status});
    while (verdicts.size() > kEntries || cached_bytes > kCachedBytes) {
      cached_bytes -= verdicts.back().spec.source.size();
      verdicts.pop_back();
    }
  }

  absl::Status Compile(const GrammarSpec& spec) const {
    const Vocabulary& words = vocabulary.get();
    PENSTOCK_RETURN_IF_ERROR(words.status());
    PENSTOCK_ASSIGN_OR_RETURN(const auto grammar, (*words)->Compile(spec, {}));
    if (CpuTime() > kCpuLimit) return TooSlow();
    return Follow(*grammar, rows, ends);
  }
};

GrammarChecker::GrammarChecker(std::shared_ptr<const text::Tokenizer> tokenizer, std::uint32_t rows,
                               std::vector<TokenId> eos_ids)
    : state_(std::make_shared<State>()) {
  state_->rows = rows;
  state_->ends = eos_ids;
  state_->vocabulary = std::async(std::launch::async, [tokenizer = std::move(tokenizer), rows,
                                                       eos_ids = std::move(eos_ids)] {
    return text::Vocabulary::Create(*tokenizer, rows, eos_ids, text::Vocabulary::Tables::kPlain);
  });
}

GrammarChecker::~GrammarChecker() = default;

absl::Status GrammarChecker::Check(const GrammarSpec& spec) {
  const auto deadline = std::chrono::steady_clock::now() + kWallLimit;
  const std::shared_ptr<State> state = state_;
  std::unique_lock lock(state->mutex);
  if (auto known = state->Find(spec)) return *known;
  if (!state->changed.wait_until(lock, deadline, [&state] { return state->seats > 0; })) {
    return absl::UnavailableError("other grammars are being checked");
  }
  --state->seats;
  auto run = std::make_shared<State::Run>();
  std::thread([state, run, spec] {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
    absl::Status status = state->Compile(spec);
    const std::lock_guard guard(state->mutex);
    ++state->seats;
    state->Keep(spec, status);
    run->status = std::move(status);
    state->changed.notify_all();
  }).detach();
  if (!state->changed.wait_until(lock, deadline, [&run] { return run->status.has_value(); })) {
    return TooSlow();
  }
  return *run->status;
}

}  // namespace penstock::router
