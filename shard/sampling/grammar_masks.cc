#include "shard/sampling/grammar_masks.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace penstock::shard {

GrammarMasks::GrammarMasks(std::uint32_t slots, GrammarCache& cache)
    : cache_(cache), cells_(slots), worker_([this] { Work(); }) {}

GrammarMasks::~GrammarMasks() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  news_.notify_one();
  worker_.join();
}

void GrammarMasks::Start(SlotId slot, const GrammarSpec& spec, std::span<const TokenId> generated) {
  auto cell = std::make_shared<Cell>();
  cell->spec = spec;
  cells_[slot.value()] = cell;
  Push({std::move(cell), {generated.begin(), generated.end()}});
}

void GrammarMasks::EndAll() { std::fill(cells_.begin(), cells_.end(), nullptr); }

void GrammarMasks::Advance(SlotId slot, TokenId token) { Push({cells_[slot.value()], {token}}); }

void GrammarMasks::Push(Job job) {
  {
    const std::lock_guard lock(mutex_);
    job.cell->busy = true;
    jobs_.push_back(std::move(job));
  }
  news_.notify_one();
}

absl::StatusOr<GrammarMasks::Row> GrammarMasks::Wait(SlotId slot) {
  Cell& cell = *cells_[slot.value()];
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&cell] { return !cell.busy; });
  if (!cell.status.ok()) return cell.status;
  return Row{cell.mask, cell.only_end};
}

void GrammarMasks::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    // The last owner was this job: the sequence has ended meanwhile.
    const bool wanted = job.cell.use_count() > 1;
    if (wanted && job.cell->status.ok()) {
      job.cell->status = Move(*job.cell, job.tokens);
      if (!job.cell->status.ok()) cache_.Drop(job.cell->spec);
    }
    lock.lock();
    job.cell->busy = false;
    done_.notify_one();
  }
}

absl::Status GrammarMasks::Move(Cell& cell, std::span<const TokenId> tokens) {
  if (cell.matcher == nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto grammar, cache_.Get(cell.spec));
    PENSTOCK_ASSIGN_OR_RETURN(cell.matcher, grammar->Start());
    cell.mask.resize(text::MaskWords(cache_.rows()));
  }
  if (!tokens.empty()) PENSTOCK_RETURN_IF_ERROR(cell.matcher->Accept(tokens));
  PENSTOCK_RETURN_IF_ERROR(cell.matcher->Mask(cell.mask));
  PENSTOCK_ASSIGN_OR_RETURN(const auto where, cell.matcher->Where());
  cell.only_end = where.complete;
  return absl::OkStatus();
}

}  // namespace penstock::shard
