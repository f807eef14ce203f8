#include "shard/executor/text_embedder.h"

#include <algorithm>
#include <string>

#include "common/status.h"

namespace penstock::shard {

TextEmbedder::TextEmbedder(const EmbedderOptions& options, const HeadLayers& head, Backend& backend)
    : options_(options), head_(head), backend_(backend) {
  for (std::uint32_t i = 0; i < options_.blocks; ++i) block_ids_.emplace_back(i);
}

absl::Status TextEmbedder::Check(std::span<const EmbedText> texts) const {
  std::uint32_t most = options_.max_tokens;
  if (options_.whole_texts) most = std::min(most, options_.max_step_tokens);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::size_t count = texts[i].tokens.size();
    if (count > 0 && count <= most) continue;
    return BadValue("texts[" + std::to_string(i) + "]", std::to_string(count) + " tokens",
                    "from 1 to " + std::to_string(most));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<float>>> TextEmbedder::Embed(
    std::span<const EmbedText> texts) {
  PENSTOCK_RETURN_IF_ERROR(Check(texts));
  std::vector<std::vector<double>> pooled(texts.size());
  for (std::size_t next = 0; next < texts.size();) {
    Clear();
    if (texts[next].tokens.size() > options_.max_step_tokens) {
      PENSTOCK_RETURN_IF_ERROR(RunLong(next, texts[next], pooled));
      ++next;
      continue;
    }
    next = Pack(texts, next);
    PENSTOCK_RETURN_IF_ERROR(RunStep(pooled));
  }
  std::vector<std::vector<float>> vectors;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool mean = options_.pooling == PoolingKind::kMean;
    const double divisor = mean ? static_cast<double>(texts[i].tokens.size()) : 1.0;
    std::vector<float>& vector = vectors.emplace_back();
    for (const double sum : pooled[i]) vector.push_back(static_cast<float>(sum / divisor));
    head_.Run(vector);
  }
  return vectors;
}

void TextEmbedder::Clear() {
  tokens_.clear();
  segments_.clear();
  wanted_rows_.clear();
  text_of_row_.clear();
  used_blocks_ = 0;
}

std::size_t TextEmbedder::Pack(std::span<const EmbedText> texts, std::size_t next) {
  while (next < texts.size() && Add(next, texts[next], 0)) ++next;
  return next;
}

// False if there is no place in the step for the tokens from `first` on. Those of a long text are
// cut to a step.
bool TextEmbedder::Add(std::size_t index, const EmbedText& text, std::uint32_t first) {
  const auto size = static_cast<std::uint32_t>(text.tokens.size());
  const bool is_long = size > options_.max_step_tokens;
  if (is_long && first == 0 && !segments_.empty()) return false;
  const std::uint32_t count = is_long ? std::min(options_.max_step_tokens, size - first) : size;
  const std::uint32_t blocks = (first + count + options_.block_size - 1) / options_.block_size;
  const auto rows = static_cast<std::uint32_t>(tokens_.size());
  const bool fits = rows + count <= options_.max_step_tokens &&
                    segments_.size() < options_.max_texts &&
                    used_blocks_ + blocks <= options_.blocks;
  if (!fits) return false;
  RaggedSegment segment;
  segment.query_start = rows;
  segment.query_count = count;
  segment.context_length = first;
  segment.blocks = std::span(block_ids_).subspan(used_blocks_, blocks);
  segment.state = SlotId(static_cast<std::uint32_t>(segments_.size()));
  segment.text_length = segment.prompt_length = size;
  segment.first_part = text.first_part;
  segments_.push_back(segment);
  used_blocks_ += blocks;
  tokens_.insert(tokens_.end(), text.tokens.begin() + first, text.tokens.begin() + first + count);
  AddWantedRows({index, first, count, first + count == size}, rows);
  return true;
}

void TextEmbedder::AddWantedRows(const Piece& piece, std::uint32_t query_start) {
  const auto want = [&](std::uint32_t row) {
    wanted_rows_.push_back(query_start + row);
    text_of_row_.push_back(piece.text);
  };
  switch (options_.pooling) {
    case PoolingKind::kCls:
      if (piece.first == 0) want(0);
      return;
    case PoolingKind::kLast:
      if (piece.ends) want(piece.count - 1);
      return;
    case PoolingKind::kMean:
    case PoolingKind::kMax:
      for (std::uint32_t row = 0; row < piece.count; ++row) want(row);
      return;
  }
}

absl::Status TextEmbedder::RunLong(std::size_t index, const EmbedText& text,
                                   std::vector<std::vector<double>>& pooled) {
  std::uint32_t done = 0;
  while (done < text.tokens.size()) {
    Clear();
    if (!Add(index, text, done)) {
      return absl::InternalError("the cache has no place for a text of " +
                                 std::to_string(text.tokens.size()) + " tokens");
    }
    done += segments_.front().query_count;
    PENSTOCK_RETURN_IF_ERROR(RunStep(pooled));
  }
  return absl::OkStatus();
}

absl::Status TextEmbedder::RunStep(std::vector<std::vector<double>>& pooled) {
  PENSTOCK_RETURN_IF_ERROR(backend_.Execute({tokens_, segments_, wanted_rows_}));
  const auto rows = static_cast<std::uint32_t>(wanted_rows_.size());
  for (std::uint32_t first = 0; first < rows; first += options_.max_logit_rows) {
    const std::uint32_t count = std::min(options_.max_logit_rows, rows - first);
    PENSTOCK_ASSIGN_OR_RETURN(const TensorView view, backend_.Logits(first, count));
    const auto* values = static_cast<const float*>(view.data);
    for (std::uint32_t i = 0; i < count; ++i) {
      Pool(text_of_row_[first + i], values + std::size_t{i} * options_.width, pooled);
    }
  }
  return absl::OkStatus();
}

void TextEmbedder::Pool(std::size_t text, const float* row,
                        std::vector<std::vector<double>>& pooled) const {
  std::vector<double>& to = pooled[text];
  if (to.empty()) {
    to.assign(row, row + options_.width);
    return;
  }
  const bool largest = options_.pooling == PoolingKind::kMax;
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = largest ? std::max(to[i], double{row[i]}) : to[i] + row[i];
  }
}

}  // namespace penstock::shard
