#include "shard/sampling/grammar_cache.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "text/tokenizer.h"

namespace penstock::shard {
namespace {

absl::StatusOr<std::shared_ptr<const text::Vocabulary>> MakeVocabulary(
    const std::string& folder, std::uint32_t rows, const std::vector<TokenId>& eos_ids) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto tokenizer, text::Tokenizer::Load(folder));
  return text::Vocabulary::Create(*tokenizer, rows, eos_ids, text::Vocabulary::Tables::kPrepared);
}

}  // namespace

GrammarCache::GrammarCache(std::string folder, std::uint32_t rows, std::vector<TokenId> eos_ids)
    : rows_(rows),
      vocabulary_(std::async(std::launch::async,
                             [folder = std::move(folder), rows, eos_ids = std::move(eos_ids)] {
                               return MakeVocabulary(folder, rows, eos_ids);
                             })) {}

absl::Status GrammarCache::Ready() const { return vocabulary_.get().status(); }

absl::StatusOr<std::shared_ptr<const text::CompiledGrammar>> GrammarCache::Get(
    const GrammarSpec& spec) {
  if (auto found = Find(spec)) return found;
  if (on_compile_) on_compile_();
  PENSTOCK_RETURN_IF_ERROR(Ready());
  PENSTOCK_ASSIGN_OR_RETURN(auto grammar, (*vocabulary_.get())->Compile(spec, {}));
  std::list<Entry> dropped;  // destroyed after the lock, because that takes long
  const std::lock_guard lock(mutex_);
  entries_.push_front({spec, grammar});
  if (entries_.size() > kEntries) dropped.splice(dropped.begin(), entries_, --entries_.end());
  return grammar;
}

std::shared_ptr<const text::CompiledGrammar> GrammarCache::Find(const GrammarSpec& spec) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&spec](const Entry& entry) { return entry.spec == spec; });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return entries_.front().grammar;
}

void GrammarCache::Drop(const GrammarSpec& spec) {
  const std::lock_guard lock(mutex_);
  entries_.remove_if([&spec](const Entry& entry) { return entry.spec == spec; });
}

}  // namespace penstock::shard
