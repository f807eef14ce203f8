#include "shard/backend/row_angles.h"

#include <algorithm>

namespace penstock::shard {

void SetRowAngles(const RopeSpec& rope, const RaggedBatch& batch, RopeTable& out) {
  const std::size_t size = rope.dim / 2;
  std::vector<float> frequencies;
  std::uint32_t length = 0;  // of the text that has them
  for (const RaggedSegment& segment : batch.segments) {
    const bool whole = rope.type == RopeType::kLongrope;
    const std::uint32_t least = whole ? segment.text_length : segment.prompt_length;
    for (std::uint32_t i = 0; i < segment.query_count; ++i) {
      const std::uint32_t position = segment.context_length + (segment.candidates ? 0 : i);
      const std::uint32_t text = std::max(least, position + 1);
      if (text != length) frequencies = RopeFrequencies(rope, text);
      length = text;
      const std::size_t row = (segment.query_start + i) * size;
      SetAngles(rope, frequencies, position, out.cos.data() + row, out.sin.data() + row);
    }
  }
}

}  // namespace penstock::shard
