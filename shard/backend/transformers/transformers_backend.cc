#include "shard/backend/transformers/transformers_backend.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/log.h"
#include "common/status.h"
#include "shard/backend/batch_check.h"

namespace penstock::shard::transformers {
namespace {

absl::Status HasNo(const char* what) {
  return absl::UnimplementedError("--engine transformers has no " + std::string(what));
}

std::string TextOf(const boost::json::object& reply, const char* field) {
  const auto* text = reply.if_contains(field);
  return text != nullptr && text->is_string() ? std::string(text->as_string()) : "";
}

std::uint64_t NumberOf(const boost::json::object& reply, const char* field) {
  const auto* number = reply.if_contains(field);
  const bool known = number != nullptr && number->is_int64() && number->as_int64() > 0;
  return known ? static_cast<std::uint64_t>(number->as_int64()) : 0;
}

class TransformersBackend final : public Backend {
 public:
  explicit TransformersBackend(TransformersOptions options) : options_(std::move(options)) {}

  absl::Status Load(const LoadProgress& progress);

  std::string Name() const override {
    return ways_.empty() ? "transformers" : "transformers/" + ways_;
  }
  absl::Status Prepare(const BackendLimits& limits, Communicator* communicator) override;
  // The largest step is not measured: a text of the longest length would take minutes.
  bool TakesMemoryInSteps() const override { return false; }
  absl::Status AllocateCache(const KvBlocks& blocks) override { return Reset(blocks, true); }
  absl::Status AllocateServingCache(const KvBlocks& blocks) override {
    return Reset(blocks, false);
  }
  absl::Status CopyBlocks(std::span<const BlockCopy>) override { return HasNo("shared blocks"); }
  absl::Status Execute(const RaggedBatch& batch) override;
  absl::Status Similarities(std::uint32_t, std::span<float>) override {
    return HasNo("contrastive search");
  }
  absl::Status CommitCandidates(std::span<const CandidateChoice>) override {
    return HasNo("contrastive search");
  }
  absl::Status EndSequences(std::span<const SlotId> slots) override;
  absl::StatusOr<TensorView> Logits(std::uint32_t first, std::uint32_t count) override;
  std::uint64_t MemoryBytes() const override {
    return weight_bytes_ + options_.layout.Bytes(blocks_);
  }

 private:
  absl::Status Reset(const KvBlocks& blocks, bool timing);
  std::uint64_t LogitBytes(std::uint64_t rows) const {
    return rows * options_.program.vocabulary * sizeof(float);
  }

  TransformersOptions options_;
  BackendLimits limits_;
  std::string ways_;  // what the self check left out; empty: nothing
  std::uint64_t weight_bytes_ = 0;
  KvBlocks blocks_;
  std::vector<std::int32_t> numbers_;  // of the present step
  std::size_t logit_rows_ = 0;         // of the last step
  std::string logits_;
};

absl::Status TransformersBackend::Load(const LoadProgress& progress) {
  const std::uint64_t total = options_.weight_bytes;
  PENSTOCK_ASSIGN_OR_RETURN(const Frame loaded,
                            options_.child->Call({{"call", "load"}}, {}, 0,
                                                 [&](std::string_view stage, std::uint64_t bytes) {
                                                   return progress(stage, std::min(bytes, total),
                                                                   total);
                                                 }));
  weight_bytes_ = NumberOf(loaded.header, "weight_bytes");
  ways_ = TextOf(loaded.header, "ways");
  const auto* notes = loaded.header.if_contains("notes");
  if (notes == nullptr || !notes->is_array()) return absl::OkStatus();
  for (const boost::json::value& note : notes->as_array()) {
    if (note.is_string()) log::Warn("self check: " + std::string(note.as_string()));
  }
  log::Info(ways_.empty() ? "self check: cached steps, chunks of prompts and ragged batches give "
                            "the logits of whole texts"
                          : "self check: this model is computed in a slower way: " + ways_);
  return absl::OkStatus();
}

absl::Status TransformersBackend::Prepare(const BackendLimits& limits, Communicator*) {
  limits_ = limits;
  logits_.reserve(LogitBytes(limits.max_logit_rows));
  return absl::OkStatus();
}

absl::Status TransformersBackend::Reset(const KvBlocks& blocks, bool timing) {
  blocks_ = blocks;
  logit_rows_ = 0;
  return options_.child->Call({{"call", "reset"}, {"timing", timing}}).status();
}

absl::Status TransformersBackend::Execute(const RaggedBatch& batch) {
  logit_rows_ = 0;
  PENSTOCK_RETURN_IF_ERROR(
      CheckBatch(batch, limits_, options_.program, {options_.layout.block_size, blocks_}));
  numbers_.assign(batch.tokens.begin(), batch.tokens.end());
  for (const RaggedSegment& segment : batch.segments) {
    for (const std::uint32_t number :
         {segment.state.value(), segment.query_count, segment.context_length}) {
      numbers_.push_back(static_cast<std::int32_t>(number));
    }
  }
  for (const std::uint32_t row : batch.logit_rows) {
    numbers_.push_back(static_cast<std::int32_t>(row));
  }
  PENSTOCK_RETURN_IF_ERROR(options_.child
                               ->Call({{"call", "execute"},
                                       {"tokens", batch.tokens.size()},
                                       {"segments", batch.segments.size()}},
                                      std::as_bytes(std::span(numbers_)))
                               .status());
  logit_rows_ = batch.logit_rows.size();
  return absl::OkStatus();
}

absl::Status TransformersBackend::EndSequences(std::span<const SlotId> slots) {
  boost::json::array numbers;
  for (const SlotId slot : slots) numbers.emplace_back(slot.value());
  return options_.child->Send({{"call", "release"}, {"slots", std::move(numbers)}});
}

absl::StatusOr<TensorView> TransformersBackend::Logits(std::uint32_t first, std::uint32_t count) {
  PENSTOCK_RETURN_IF_ERROR(CheckLogitRows(first, count, limits_, logit_rows_));
  const std::uint64_t bytes = LogitBytes(count);
  PENSTOCK_ASSIGN_OR_RETURN(
      Frame reply,
      options_.child->Call({{"call", "logits"}, {"first", first}, {"count", count}}, {}, bytes));
  if (reply.body.size() != bytes) {
    return absl::InternalError("the Python process gave " + std::to_string(reply.body.size()) +
                               " bytes of logits, not " + std::to_string(bytes));
  }
  logits_ = std::move(reply.body);
  return TensorView::Matrix(logits_.data(), count, options_.program.vocabulary, DType::kFloat32);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeTransformersBackend(TransformersOptions options,
                                                                 const LoadProgress& progress) {
  auto backend = std::make_unique<TransformersBackend>(std::move(options));
  PENSTOCK_RETURN_IF_ERROR(backend->Load(progress));
  return backend;
}

}  // namespace penstock::shard::transformers
