#include "sim/checker/text_lengths.h"

#include <cstdint>
#include <string>

#include "sim/token_source.h"

namespace penstock::sim {

void SetTextLengths(const GroupCapacity& capacity, const SequenceStart& start,
                    std::string_view tenant, SequenceModel& sequence) {
  const bool recomputes = capacity.length_rule == LengthRule::kRecompute;
  std::uint32_t length = 0;  // of the text that K and V depend on, if it is longer than usual
  if (recomputes) length = start.prompt_length + (start.sampling.Candidates() > 0 ? 1 : 0);
  if (capacity.length_rule == LengthRule::kPromptLength) {
    length = start.prompt_length - start.sample_index_base;
  }
  const bool longer = length > capacity.original_length;
  if (recomputes && !longer) sequence.most_positions = capacity.original_length;
  if (recomputes) length = 1;  // all longer texts are alike
  std::string root(tenant);
  if (!start.adapter_id.empty()) root += '\0' + start.adapter_id;
  sequence.kv.histories = HistoriesOf(root, start.prompt, longer ? length : 0);
}

}  // namespace penstock::sim
