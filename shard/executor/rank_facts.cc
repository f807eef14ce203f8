#include "shard/executor/rank_facts.h"

#include <algorithm>
#include <string>

#include "common/human_bytes.h"
#include "shard/weights/weight_source.h"

namespace penstock::shard {
namespace {

// "awq, 4 bits: 224 matrices of the model become int4, 196 with the groups of the files: …".
// A matrix whose groups do not fit is expanded and quantised again.
std::string BecomesInt4(const Model& model) {
  const QuantizedCount& count = model.quantized;
  const CheckpointSource source(model.checkpoint, model.weight_plan, model.dtype);
  std::size_t kept = 0;
  for (std::int32_t i = 0; i < source.Count(); ++i) {
    if (source.HasInt4(i))
      kept += model.weight_plan.targets[static_cast<std::size_t>(i)].parts.size();
  }
  return model.spec.format->name() + ": " + std::to_string(count.matrices) +
         " matrices of the model become int4, " + std::to_string(kept) +
         " with the groups of the files: " + HumanBytes(count.bytes) + " in the files, " +
         HumanBytes(count.elements * kInt4Bits / 64) + " in int4";
}

}  // namespace

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

std::string DescribeQuantized(const Model& model) {
  if (model.quantization == Quantization::kInt4) return BecomesInt4(model);
  const QuantizedCount& count = model.quantized;
  return model.spec.format->name() + ": " + std::to_string(count.matrices) +
         " matrices of the model are expanded while loading: " + HumanBytes(count.bytes) +
         " in the files, " + HumanBytes(count.elements * DTypeBytes(model.dtype)) + " in " +
         std::string(DTypeName(model.dtype));
}

}  // namespace penstock::shard
