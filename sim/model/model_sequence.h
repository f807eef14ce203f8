// What the model knows of a request while it waits and while it runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/input.h"
#include "sim/model/block_store.h"

namespace penstock::sim {

// Survives preemptions.
struct ModelRequest {
  scheduler::Arrival arrival;
  std::uint64_t number = 0;        // of arrival
  std::vector<TokenId> generated;  // reported tokens
  std::uint32_t preemptions = 0;
  bool recomputed = false;             // preempted as it passed the original length
  bool lost = false;                   // its group was lost
  bool yielded = false;                // left last for a request that was due
  bool due = false;                    // was admitted as due
  std::uint32_t losses = 0;            // for which a request may be to blame
  std::uint64_t arithmetic_class = 0;  // of its last group
  std::optional<std::uint32_t> finish_at;

  RequestId id() const { return arrival.request; }
  bool ran() const { return yielded || preemptions > 0 || recomputed || lost; }
  bool restart() const { return ran() && !yielded; }
  bool suspect() const { return losses >= 2; }
  std::uint32_t candidates() const { return arrival.sampling.Candidates(); }
  std::uint32_t prompt() const { return static_cast<std::uint32_t>(arrival.prompt.size()); }
  std::uint32_t received() const { return static_cast<std::uint32_t>(generated.size()); }
  std::uint64_t WorstCase() const { return std::uint64_t{prompt()} + arrival.max_new_tokens; }
  // The output has no token after this one.
  std::uint32_t Last() const {
    return std::min(arrival.max_new_tokens, finish_at.value_or(UINT32_MAX));
  }
  std::vector<TokenId> Tokens() const {
    std::vector<TokenId> tokens = arrival.prompt;
    tokens.insert(tokens.end(), generated.begin(), generated.end());
    return tokens;
  }
};

// One start of a request on a group.
struct ModelSequence : ModelRequest {
  SequenceId sequence;
  std::string root;  // whose prompts may share its blocks
  std::uint64_t most_positions = UINT64_MAX;
  std::uint32_t most_rows = 1;  // of a decode without candidates
  std::uint32_t cut = 0;        // of its prompt, where a snapshot is saved; 0 = nowhere
  std::vector<StoreBlock> blocks;
  std::uint32_t reserved = 0;         // blocks, not drawn yet
  std::uint64_t reserved_tokens = 0;  // of max_batch_total_tokens
  std::uint32_t adopted = 0;          // leading blocks that came from the cache
  std::size_t named_blocks = 0;       // leading blocks that plans have named
  std::uint32_t entered = 0;          // leading blocks in the index
  bool closed = false;                // no further block enters the index
  WindowEntries window;
  // The node of another sequence with its tokens so far, and its number of blocks up to there.
  std::optional<StoreNode> same;
  std::uint32_t followed = 0;

  bool started = false;
  bool chunked = false;
  bool retiring = false;   // in no later plan
  bool released = false;   // its reservation is given back, its blocks are retiring
  bool preempted = false;  // and queued again when no plan in flight names it
  bool waits_for_memory = false;
  bool prefix_pinned = false;
  std::optional<StepId> padded_since;
  std::optional<StoreBlock> tail_to_copy;

  std::uint32_t resumed = 0;  // tokens of earlier starts
  std::uint32_t cached = 0;   // leading positions from the cache
  std::uint32_t planned = 0;  // those, and prompt positions in plans
  std::uint32_t tokens_in_flight = 0;
  std::uint32_t plans_in_flight = 0;
  StepId last_plan;

  void Close() {
    closed = true;
    same.reset();
  }
  std::uint32_t PromptLength() const { return prompt() + resumed; }
  std::uint32_t PromptLeft() const { return PromptLength() - planned; }
  bool WantsPromptLogprobs() const { return arrival.logprobs.prompt_logprobs && resumed == 0; }
  std::uint32_t MostTokens() const { return received() + tokens_in_flight; }
  // The next row writes K and V of the newest token. With contrastive search the decode that chose
  // the token wrote them already.
  std::uint32_t Unwritten() const { return candidates() > 0 ? 0 : 1; }
  std::uint64_t PositionsAfter(std::uint64_t tokens) const {
    return std::uint64_t{prompt()} + MostTokens() - Unwritten() + tokens;
  }
  std::uint32_t TokensOf(std::uint32_t rows) const {
    return candidates() > 0 ? std::min(rows, 1u) : rows;
  }
  std::uint64_t PositionsLeft() const {
    return most_positions - std::min(PositionsAfter(0), most_positions);
  }
  // Rows of its next decode, if drafts or forced tokens may make it up to `share`.
  std::uint32_t NextRows(std::uint32_t share) const {
    if (retiring || PromptLeft() > 0 || MostTokens() >= Last() || PositionsLeft() == 0) return 0;
    if (candidates() > 0) return candidates();
    const std::uint64_t left = std::min<std::uint64_t>(Last() - MostTokens(), PositionsLeft());
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::min(share, most_rows), left));
  }
  // It was admitted as due and has generated its share since.
  bool HadQuantum(std::uint32_t quantum) const {
    return due && !retiring && received() - resumed >= quantum;
  }
  // Positions with K and V of known tokens.
  std::uint32_t Known() const {
    if (PromptLeft() > 0 || received() == resumed) return planned;
    return prompt() + received() - Unwritten();
  }
};

}  // namespace penstock::sim
