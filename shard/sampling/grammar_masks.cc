#include "shard/sampling/grammar_masks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/status.h"
#include "common/thread_priority.h"

namespace penstock::shard {

namespace {

// The most forced tokens that are found at once.
constexpr std::size_t kMostForced = 64;

void Keep(std::span<const TokenId> tokens, std::vector<TokenId>& context) {
  constexpr std::size_t kMost = text::GrammarMatcher::kForcedContext;
  tokens = tokens.last(std::min(tokens.size(), kMost));
  context.insert(context.end(), tokens.begin(), tokens.end());
  if (context.size() > kMost) context.erase(context.begin(), context.end() - kMost);
}

}  // namespace

GrammarMasks::GrammarMasks(std::uint32_t slots, GrammarCache& cache)
    : cache_(cache), cells_(slots), worker_([this] { Work(); }), compiler_([this] { Compile(); }) {}

GrammarMasks::~GrammarMasks() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  masks_.news.notify_one();
  compiles_.news.notify_one();
  worker_.join();
  compiler_.join();
}

void GrammarMasks::Start(SlotId slot, const GrammarSpec& spec, std::span<const TokenId> generated,
                         const ForcingRule& rule) {
  End(slot);
  auto cell = std::make_shared<Cell>();
  cell->spec = spec;
  cell->forces = rule.forces;
  cell->never.assign(rule.never.begin(), rule.never.end());
  Keep(rule.prompt, cell->context);
  cells_[slot.value()] = std::move(cell);
  Ask(slot, {generated.begin(), generated.end()});
}

void GrammarMasks::Advance(SlotId slot, std::span<const TokenId> tokens) {
  Ask(slot, {tokens.begin(), tokens.end()});
}

void GrammarMasks::End(SlotId slot) {
  const std::shared_ptr<Cell> cell = std::exchange(cells_[slot.value()], nullptr);
  if (cell == nullptr) return;
  const std::lock_guard lock(mutex_);
  cell->wanted = false;
  std::erase_if(compiles_.jobs, [&cell](const Job& job) { return job.cell == cell; });
}

void GrammarMasks::Ask(SlotId slot, std::vector<TokenId> tokens) {
  const std::shared_ptr<Cell>& cell = cells_[slot.value()];
  cell->due = SteadyNow() + kLongestWait;
  Push(masks_, {cell, std::move(tokens)});
}

void GrammarMasks::Push(Queue& queue, Job job) {
  {
    const std::lock_guard lock(mutex_);
    job.cell->busy = true;
    if (job.cell->wanted) queue.jobs.push_back(std::move(job));
  }
  queue.news.notify_one();
}

bool GrammarMasks::Take(Queue& queue, Job& job) {
  std::unique_lock lock(mutex_);
  while (true) {
    queue.news.wait(lock, [&] { return stopping_ || !queue.jobs.empty(); });
    if (stopping_) return false;
    job = std::move(queue.jobs.front());
    queue.jobs.pop_front();
    if (job.cell->wanted) return true;
  }
}

bool GrammarMasks::AnyReady(std::span<const SlotId> slots, Time until) {
  for (const SlotId slot : slots) until = std::min(until, cells_[slot.value()]->due);
  std::unique_lock lock(mutex_);
  const auto ready = [this](SlotId slot) { return !cells_[slot.value()]->busy; };
  const bool any = done_.wait_until(lock, OnSteadyClock(until),
                                    [&] { return std::any_of(slots.begin(), slots.end(), ready); });
  if (any) return true;
  const Time now = SteadyNow();  // a late mask fails its sequence
  return std::any_of(slots.begin(), slots.end(),
                     [&](SlotId slot) { return cells_[slot.value()]->due <= now; });
}

absl::StatusOr<GrammarMasks::Row> GrammarMasks::Get(SlotId slot) {
  Cell& cell = *cells_[slot.value()];
  std::unique_lock lock(mutex_);
  if (!done_.wait_until(lock, OnSteadyClock(cell.due), [&cell] { return !cell.busy; })) {
    return absl::DeadlineExceededError("not compiled within " +
                                       std::to_string(kLongestWait.count()) + " s");
  }
  if (!cell.status.ok()) return cell.status;
  return Row{cell.mask, cell.only_end, cell.forced};
}

std::span<const TokenId> GrammarMasks::Forced(SlotId slot) {
  const Cell& cell = *cells_[slot.value()];
  const std::lock_guard lock(mutex_);
  if (cell.busy || !cell.status.ok()) return {};
  return cell.forced;
}

void GrammarMasks::Finish(Cell& cell, absl::Status status) {
  if (!status.ok()) cache_.Drop(cell.spec);
  {
    const std::lock_guard lock(mutex_);
    cell.status = std::move(status);
    cell.busy = false;
  }
  done_.notify_one();
}

void GrammarMasks::Work() {
  for (Job job; Take(masks_, job); job = {}) {
    Cell& cell = *job.cell;
    if (!cell.status.ok()) {
      Finish(cell, cell.status);
    } else if (Compiled(cell)) {
      Finish(cell, Move(cell, job.tokens));
    } else {
      Push(compiles_, std::move(job));
    }
  }
}

bool GrammarMasks::Compiled(Cell& cell) {
  if (cell.matcher == nullptr && cell.grammar == nullptr) cell.grammar = cache_.Find(cell.spec);
  return cell.matcher != nullptr || cell.grammar != nullptr;
}

void GrammarMasks::Compile() {
  UseBackgroundPriority();
  for (Job job; Take(compiles_, job); job = {}) {
    auto grammar = cache_.Get(job.cell->spec);
    if (grammar.ok()) {
      job.cell->grammar = *std::move(grammar);
      Push(masks_, std::move(job));
    } else {
      Finish(*job.cell, grammar.status());
    }
  }
}

absl::Status GrammarMasks::Move(Cell& cell, std::span<const TokenId> tokens) {
  if (cell.matcher == nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(cell.matcher, cell.grammar->Start());
    cell.grammar.reset();
    cell.mask.resize(text::MaskWords(cache_.rows()));
  }
  if (!tokens.empty()) PENSTOCK_RETURN_IF_ERROR(cell.matcher->Accept(tokens));
  Keep(tokens, cell.context);
  const bool follows = tokens.size() < cell.forced.size() &&
                       std::equal(tokens.begin(), tokens.end(), cell.forced.begin());
  if (follows) {
    cell.forced.erase(cell.forced.begin(), cell.forced.begin() + tokens.size());
  } else {
    cell.forced.clear();
    PENSTOCK_RETURN_IF_ERROR(cell.matcher->Mask(cell.mask));
    PENSTOCK_ASSIGN_OR_RETURN(const auto where, cell.matcher->Where());
    cell.only_end = where.complete;
    if (cell.forces) PENSTOCK_RETURN_IF_ERROR(FindForced(cell));
  }
  if (cell.forced.empty()) return absl::OkStatus();
  std::fill(cell.mask.begin(), cell.mask.end(), 0u);
  Add(cell.forced.front(), cell.mask);
  return absl::OkStatus();
}

absl::Status GrammarMasks::FindForced(Cell& cell) {
  PENSTOCK_ASSIGN_OR_RETURN(cell.forced,
                            cell.matcher->Forced(cell.mask, cell.context, kMostForced));
  const auto end = std::find_first_of(cell.forced.begin(), cell.forced.end(), cell.never.begin(),
                                      cell.never.end());
  cell.forced.erase(end, cell.forced.end());
  return absl::OkStatus();
}

}  // namespace penstock::shard
