// Turns texts into vectors on a backend: an embedding or the numbers of a classifier.
//
// Texts are packed into steps. Each begins its own blocks, from the first one on: no sequence keeps
// any. A text that is longer than a step continues in steps of its own, if a token sees only what
// is before it. Chunks and sums depend on the text alone, so the bits of a vector do not depend on
// the other texts.
//
// Threading: the model thread. With several ranks every rank makes the same calls.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "common/plan/embed_text.h"
#include "shard/backend/backend.h"
#include "shard/executor/head_layers.h"
#include "shard/model/pooling.h"

namespace penstock::shard {

struct EmbedderOptions {
  PoolingKind pooling = PoolingKind::kLast;
  bool whole_texts = false;  // a token sees those after it: a text is one step
  std::uint32_t width = 0;   // of a row
  std::uint32_t max_step_tokens = 0;
  std::uint32_t max_texts = 0;   // of a step
  std::uint32_t max_tokens = 0;  // of a text
  std::uint32_t max_logit_rows = 64;
  std::uint32_t blocks = 0;
  std::uint32_t block_size = 16;
};

class TextEmbedder {
 public:
  // Both outlive it.
  TextEmbedder(const EmbedderOptions& options, const HeadLayers& head, Backend& backend);

  // InvalidArgument if a text is empty or too long, or has a token that the model does not know.
  absl::StatusOr<std::vector<std::vector<float>>> Embed(std::span<const EmbedText> texts);

 private:
  // Rows of a text in the present step.
  struct Piece {
    std::size_t text = 0;
    std::uint32_t first = 0;  // of its tokens
    std::uint32_t count = 0;
    bool ends = false;
  };

  absl::Status Check(std::span<const EmbedText> texts) const;
  // Fills the step from `next` on. Returns the first text that has no place.
  std::size_t Pack(std::span<const EmbedText> texts, std::size_t next);
  bool Add(std::size_t index, const EmbedText& text, std::uint32_t first);
  void AddWantedRows(const Piece& piece, std::uint32_t query_start);
  absl::Status RunStep(std::vector<std::vector<double>>& pooled);
  absl::Status RunLong(std::size_t index, const EmbedText& text,
                       std::vector<std::vector<double>>& pooled);
  void Pool(std::size_t text, const float* row, std::vector<std::vector<double>>& pooled) const;
  void Clear();

  const EmbedderOptions options_;
  const HeadLayers& head_;
  Backend& backend_;
  std::vector<BlockId> block_ids_;  // 0, 1, 2, …

  // For the present step.
  std::vector<TokenId> tokens_;
  std::vector<RaggedSegment> segments_;
  std::vector<std::uint32_t> wanted_rows_;
  std::vector<std::size_t> text_of_row_;  // of wanted_rows_
  std::uint32_t used_blocks_ = 0;
};

}  // namespace penstock::shard
