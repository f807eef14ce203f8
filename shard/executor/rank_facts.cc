#include "shard/executor/rank_facts.h"

#include <algorithm>

namespace penstock::shard {

void AddCacheFacts(const Program& program, const PagedLayout& layout, v1::DescribeResponse& facts) {
  for (std::uint32_t i = 0; i < program.KvGroups(); ++i) {
    v1::KvGroup& group = *facts.add_kv_groups();
    group.set_bytes_per_token(layout.GroupBytesPerToken(i));
    const auto layers = std::count_if(layout.caches.begin(), layout.caches.end(),
                                      [i](const CacheShape& cache) { return cache.kv_group == i; });
    group.set_layers(static_cast<std::uint32_t>(layers));
    group.set_window(i == 0 ? 0 : program.kv_window);
  }
  facts.set_state_layers(static_cast<std::uint32_t>(program.states.size()));
  facts.set_state_bytes(program.StateBytes());
}

void AddPoolingFacts(const ModelSpec& spec, const Pooling& pooling, v1::DescribeResponse& facts) {
  v1::Pooling& wire = *facts.mutable_pooling();
  wire.set_task(std::string(TaskName(spec.task)));
  wire.set_pooling(std::string(PoolingName(pooling.kind)));
  wire.set_outputs(pooling.outputs);
  wire.set_normalized(pooling.normalized);
  for (const std::string& label : pooling.labels) wire.add_labels(label);
  wire.set_sigmoid(pooling.sigmoid);
  wire.set_plain_scores(pooling.plain_scores);
  wire.set_whole_texts(spec.both_ways);
}

}  // namespace penstock::shard
