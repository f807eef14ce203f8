#include "shard/backend/cpu/weights/weight_store.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "common/log.h"
#include "common/round_up.h"
#include "common/status.h"
#include "common/time.h"

namespace penstock::shard::cpu {
namespace {

// Part of the identity: raise it when the same weights are packed differently.
constexpr int kPackingVersion = 3;

// Rows are read in pieces that stay in the processor's cache until they are packed.
constexpr std::size_t kStagingBytes = std::size_t{1} << 20;

std::string Text(const Duration& time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

struct WeightStore::Plan {
  std::set<std::int32_t> matrices, gated, embeddings;
  std::map<std::int32_t, float> vectors;        // and what is added to their elements
  std::map<std::int32_t, std::int32_t> biases;  // bias -> its matrix

  explicit Plan(const Program& program) {
    for (const std::vector<Op>* ops : {&program.body, &program.head}) {
      for (const Op& op : *ops) {
        std::visit([this](const auto& typed) { Add(typed); }, op);
      }
    }
  }

 private:
  void Add(const EmbedOp& op) { embeddings.insert(op.table); }
  void Add(const PositionsOp& op) {
    if (op.table != kNoWeight) embeddings.insert(op.table);
  }
  void Add(const NormOp& op) {
    AddVector(op.weight, op.weight_offset);
    AddVector(op.bias, 0.0f);
  }
  void Add(const HeadNormOp& op) {
    AddVector(op.query_weight, op.weight_offset);
    AddVector(op.key_weight, op.weight_offset);
    AddVector(op.query_bias, 0.0f);
    AddVector(op.key_bias, 0.0f);
  }
  void Add(const WidthNormOp& op) {
    AddVector(op.query_weight, 0.0f);
    AddVector(op.key_weight, 0.0f);
  }
  void Add(const AttentionOp& op) { AddVector(op.sinks, 0.0f); }
  void Add(const ExpertsOp& op) {
    for (const Expert& expert : op.experts) {
      if (expert.gate_up == kNoWeight) continue;  // of another rank
      matrices.insert({expert.gate_up, expert.down});
      if (!op.bounded_gate.IsSet()) gated.insert(expert.gate_up);
      AddVector(expert.gate_up_bias, 0.0f);
      AddVector(expert.down_bias, 0.0f);
    }
    AddVector(op.routing.choice_bias, 0.0f);
    AddVector(op.routing.expert_scale, 0.0f);
  }
  void Add(const LatentWriteOp& op) { AddVector(op.weight, 0.0f); }
  void Add(const HeadLinearOp& op) { matrices.insert(op.matrices.begin(), op.matrices.end()); }
  void Add(const GroupNormOp& op) { AddVector(op.weight, 0.0f); }
  void Add(const ScaleOp& op) { AddVector(op.weight, 0.0f); }
  void Add(const XieluOp& op) {
    AddVector(op.positive, 0.0f);
    AddVector(op.negative, 0.0f);
  }
  void Add(const LinearOp& op) {
    matrices.insert(op.weight);
    if (op.gated) gated.insert(op.weight);
    if (op.bias != kNoWeight) biases[op.bias] = op.weight;
  }
  void Add(const DeltaNetOp& op) {
    for (const WeightIndex index : {op.convolution, op.decay, op.decay_bias, op.norm}) {
      AddVector(index, 0.0f);
    }
  }
  void Add(const ShortConvOp& op) {
    AddVector(op.convolution, 0.0f);
    AddVector(op.bias, 0.0f);
  }
  void Add(const auto&) {}  // without weights
  void AddVector(std::int32_t index, float offset) {
    if (index != kNoWeight) vectors.emplace(index, offset);
  }
};

// A piece of the region, divided among the threads in `parts` equal parts: panels of a matrix, rows
// of a table. A vector is one part. Any thread may fill blocks of the overflow.
struct WeightStore::Item {
  enum class Kind : std::uint8_t { kMatrix, kTable, kVector, kBias, kOverflow };
  Kind kind = Kind::kMatrix;
  std::int32_t index = 0;
  std::int32_t matrix = 0;  // of a bias
  float added = 0.0f;       // to each element of a vector
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::size_t parts = 1;
};

// Fills the region from the source on all threads. Thread 0 is the caller and reports progress.
class WeightStore::Filling {
 public:
  Filling(WeightStore& store, const std::vector<Item>& items, const Options& options)
      : store_(store), items_(items), options_(options), overflow_(OverflowOf(store, items)) {}

  absl::Status Run(WorkerPool& pool) {
    pool.Run([&](std::uint32_t thread) { Note(FillShare(pool.threads(), thread)); });
    done_ = store_.bytes_;
    if (status_.ok()) Report();
    return status_;
  }
  // Whether it failed because the weights do not fit the format.
  bool unfit() const { return unfit_; }

 private:
  static Overflow OverflowOf(WeightStore& store, const std::vector<Item>& items) {
    if (items.empty() || items.back().kind != Item::Kind::kOverflow) return {};
    return store.format_->OverflowIn(
        {store.region_.data() + items.back().offset, items.back().bytes});
  }

  void Note(const absl::Status& status) {
    if (status.ok()) return;
    const std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = status;
    stop_ = true;
  }

  absl::Status FillShare(std::size_t threads, std::size_t thread) {
    std::vector<std::byte> staging;
    for (const Item& item : items_) {
      const Share share = EvenShare(item.parts, threads, thread);
      if (share.count == 0) continue;
      PENSTOCK_RETURN_IF_ERROR(Fill(item, share, staging, thread));
    }
    return absl::OkStatus();
  }

  absl::Status Fill(const Item& item, Share share, std::vector<std::byte>& staging,
                    std::size_t thread) {
    std::byte* out = store_.region_.data() + item.offset;
    switch (item.kind) {
      case Item::Kind::kMatrix:
        return FillMatrix(item, share, staging, thread);
      case Item::Kind::kTable: {
        const std::size_t row =
            options_.source->Columns(item.index) * DTypeBytes(options_.source->dtype());
        for (std::size_t i = share.first, end = i + share.count; i < end;) {
          const std::size_t count =
              std::min(end - i, std::max<std::size_t>(1, kStagingBytes / row));
          PENSTOCK_RETURN_IF_ERROR(options_.source->ReadRows(item.index, i, count, out + i * row));
          PENSTOCK_RETURN_IF_ERROR(Advance(count * row, thread));
          i += count;
        }
        return absl::OkStatus();
      }
      case Item::Kind::kVector:
      case Item::Kind::kBias:
        PENSTOCK_RETURN_IF_ERROR(FillVector(item, reinterpret_cast<float*>(out)));
        return Advance(item.bytes, thread);
      case Item::Kind::kOverflow:
        break;
    }
    return absl::OkStatus();
  }

  absl::Status FillMatrix(const Item& item, Share share, std::vector<std::byte>& staging,
                          std::size_t thread) {
    PackedMatrix& matrix = store_.matrices_.at(item.index);
    const std::size_t stride = matrix.RowBytes();
    const std::size_t panel_bytes = item.bytes / item.parts;
    for (std::size_t panel = share.first; panel < share.first + share.count; ++panel) {
      const Share rows = matrix.RowsOf(panel);
      const std::size_t runs = matrix.gated() ? 2 : 1;
      if (staging.size() < runs * rows.count * stride) staging.resize(runs * rows.count * stride);
      for (std::size_t run = 0; run < runs; ++run) {
        PENSTOCK_RETURN_IF_ERROR(ReadRows(matrix, item.index, run * matrix.outputs() + rows.first,
                                          rows.count, staging.data() + run * rows.count * stride));
      }
      const auto low = reinterpret_cast<std::uintptr_t>(staging.data()) - rows.first * stride;
      const RowRuns packed{low, low + rows.count * stride, matrix.outputs(), stride};
      if (!matrix.Pack(packed, {panel, 1}, overflow_)) {
        unfit_ = true;
        return absl::CancelledError("weights do not fit their format");
      }
      PENSTOCK_RETURN_IF_ERROR(Advance(panel_bytes, thread));
    }
    return absl::OkStatus();
  }

  absl::Status ReadRows(const PackedMatrix& matrix, std::int32_t index, std::size_t first,
                        std::size_t count, std::byte* out) const {
    if (!matrix.int4_rows()) return options_.source->ReadRows(index, first, count, out);
    return options_.source->ReadInt4Rows(index, first, count, reinterpret_cast<float*>(out));
  }

  absl::Status FillVector(const Item& item, float* out) {
    const WeightSource& source = *options_.source;
    const std::size_t size = source.Rows(item.index) * source.Columns(item.index);
    std::vector<std::byte> raw(size * DTypeBytes(source.dtype()));
    PENSTOCK_RETURN_IF_ERROR(source.ReadRows(item.index, 0, source.Rows(item.index), raw.data()));
    std::vector<float> values(size);
    for (std::size_t i = 0; i < size; ++i) {
      values[i] = ReadElement(raw.data(), i, source.dtype()) + item.added;
    }
    if (item.kind == Item::Kind::kBias) {
      store_.matrices_.at(item.matrix).PackBias(values.data(), out);
    } else {
      std::fill(std::copy(values.begin(), values.end(), out), out + item.bytes / sizeof(float),
                0.0f);
    }
    return absl::OkStatus();
  }

  absl::Status Advance(std::size_t bytes, std::size_t thread) {
    done_ += bytes;
    if (thread == 0) Report();
    return stop_ ? absl::CancelledError("loading was interrupted") : absl::OkStatus();
  }

  void Report() {
    if (!options_.progress || options_.progress("weights", done_, store_.bytes_)) return;
    Note(absl::CancelledError("loading was interrupted"));
  }

  WeightStore& store_;
  const std::vector<Item>& items_;
  const Options& options_;
  Overflow overflow_;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> unfit_ = false;
  std::mutex mutex_;
  absl::Status status_;
};

std::vector<WeightStore::Item> WeightStore::Arrange(const Plan& plan, const Options& options,
                                                    const Kernels& kernels) {
  const WeightSource& source = *options.source;
  std::vector<Item> items;
  const auto add = [&](Item item, std::size_t alignment) {
    item.offset = RoundUp(EndOf(items), alignment);
    bytes_ += item.bytes;
    items.push_back(item);
  };
  std::size_t blocks = 0;  // that may need overflow
  format_ = options.format->Fallback();
  for (std::int32_t index : plan.matrices) {
    const MatrixShape shape{source.Rows(index), source.Columns(index), plan.gated.contains(index),
                            options.format->TakesInt4Rows() && source.HasInt4(index)};
    const PackedMatrix matrix(shape, kernels, *options.format);
    add({Item::Kind::kMatrix, index, 0, 0, 0, matrix.Bytes(), matrix.panels()}, kPageBytes);
    matrices_.emplace(index, matrix);
    blocks += matrix.OverflowBlocks();
    if (&matrix.format() == options.format) format_ = options.format;
  }
  for (std::int32_t index : plan.embeddings) {
    if (matrices_.contains(index)) continue;  // rows are looked up in the packed matrix
    const std::size_t columns = source.Columns(index);
    const std::size_t rows = source.Rows(index);
    add({Item::Kind::kTable, index, 0, 0, 0, rows * columns * DTypeBytes(source.dtype()), rows},
        kPageBytes);
    tables_[index] = {nullptr, columns, source.dtype()};
  }
  for (const auto& [index, added] : plan.vectors) {  // read in whole registers
    const std::size_t size =
        RoundUp(source.Rows(index) * source.Columns(index), kernels.layout.lanes);
    add({Item::Kind::kVector, index, 0, added, 0, size * sizeof(float), 1}, kCacheLineBytes);
  }
  for (const auto& [bias, matrix] : plan.biases) {
    const std::size_t size = Matrix(matrix).PaddedColumns();
    add({Item::Kind::kBias, bias, matrix, 0, 0, size * sizeof(float), 1}, kCacheLineBytes);
  }
  if (format_ == nullptr) format_ = options.format;
  if (const std::size_t bytes = format_->OverflowBytes(blocks); bytes > 0) {
    add({Item::Kind::kOverflow, 0, 0, 0, 0, bytes, 0}, kPageBytes);
  }
  return items;
}

std::size_t WeightStore::EndOf(const std::vector<Item>& items) {
  return items.empty() ? 0 : items.back().offset + items.back().bytes;
}

std::uint64_t WeightStore::BytesOf(const Program& program, const Options& options,
                                   const Kernels& kernels) {
  return EndOf(WeightStore().Arrange(Plan(program), options, kernels));
}

const WeightFormat& WeightStore::FormatFor(const Program& program, const Options& options,
                                           const Kernels& kernels) {
  WeightStore store;
  store.Arrange(Plan(program), options, kernels);
  return *store.format_;
}

std::string WeightStore::PackingText(const std::vector<Item>& items, const Kernels& kernels) const {
  std::string text = "packing " + std::to_string(kPackingVersion) + " for " +
                     std::string(IsaName(kernels.isa)) + " " +
                     std::string(DTypeName(kernels.weight)) + " as " + std::string(format_->name());
  for (std::size_t number :
       {kernels.layout.lanes, kernels.layout.panel_vectors, kernels.layout.pack}) {
    text += " " + std::to_string(number);
  }
  for (const Item& item : items) {
    text += "\n" + std::to_string(item.index) + " " + std::to_string(static_cast<int>(item.kind)) +
            " " + std::to_string(item.offset) + " " + std::to_string(item.bytes);
  }
  return text;
}

// Makes a store in the requested format, or in its fallback if the weights do not fit it.
class WeightStore::Making {
 public:
  Making(const Program& program, const Options& options, const Kernels& kernels, WorkerPool& pool)
      : plan_(program), options_(options), kernels_(kernels), pool_(pool) {
    if (options.cache_folder.empty()) return;
    identity_ = options.source->Identity();
    changed_ = options.source->Noted();
  }

  absl::StatusOr<WeightStore> Run() {
    const WeightFormat* const fallback = options_.format->Fallback();
    PENSTOCK_RETURN_IF_ERROR(Lay(*options_.format));
    const bool fits = store_.format_ == options_.format;
    if (!fits) log::Info("weights: no matrix has a size for the format " + UsedInstead());
    PENSTOCK_ASSIGN_OR_RETURN(const bool cached, ReadCache());
    if (cached) return std::move(store_);
    if (fits && fallback != nullptr) {
      PENSTOCK_ASSIGN_OR_RETURN(const bool unfit, ReadFallbackFromCache());
      if (unfit) return std::move(store_);
    }
    const absl::Status packed = Pack();
    if (!unfit_) {
      PENSTOCK_RETURN_IF_ERROR(packed);
      return std::move(store_);
    }
    log::Warn("weights: their sizes differ too much for the format " + UsedInstead());
    PENSTOCK_RETURN_IF_ERROR(Lay(*fallback));
    PENSTOCK_RETURN_IF_ERROR(Pack());
    return std::move(store_);
  }

 private:
  // "compressed; all are stored as plain".
  std::string UsedInstead() const {
    return std::string(options_.format->name()) + "; all are stored as " +
           std::string(options_.format->Fallback()->name());
  }

  // Allocates the store and decides where everything lies.
  absl::Status Lay(const WeightFormat& format) {
    store_ = WeightStore();  // frees the memory of another one first
    begin_ = SteadyNow();
    Options options = options_;
    options.format = &format;
    items_ = store_.Arrange(plan_, options, kernels_);
    auto region = MemoryRegion::Allocate(EndOf(items_));
    if (!region.ok()) return WithContext(region.status(), "packed weights");
    store_.region_ = std::move(*region);
    store_.SetPlaces(items_);
    cache_.emplace(options_.cache_folder, options_.cache_most, Identity(format), changed_);
    return absl::OkStatus();
  }

  // The identity says if weights did not fit the requested format: they have their own cache file.
  std::string Identity(const WeightFormat& format) const {
    if (identity_.empty()) return "";
    std::string text = identity_ + store_.PackingText(items_, kernels_);
    if (&format != options_.format) text += "\nnot " + std::string(options_.format->name());
    return text;
  }

  std::span<std::byte> Image() { return {store_.region_.data(), EndOf(items_)}; }

  // Returns true if an earlier start found that the weights do not fit the format.
  absl::StatusOr<bool> ReadFallbackFromCache() {
    if (identity_.empty()) return false;
    PENSTOCK_RETURN_IF_ERROR(Lay(*options_.format->Fallback()));
    PENSTOCK_ASSIGN_OR_RETURN(const bool cached, ReadCache());
    if (cached) {
      log::Warn("weights: their sizes differ too much for the format " + UsedInstead());
      return true;
    }
    PENSTOCK_RETURN_IF_ERROR(Lay(*options_.format));
    return false;
  }

  // Whether the cache has them.
  absl::StatusOr<bool> ReadCache() {
    const auto owner = [this](std::size_t offset) {
      const auto next =
          std::upper_bound(items_.begin(), items_.end(), offset,
                           [](std::size_t at, const Item& b) { return at < b.offset; });
      const Item& item = *std::prev(next);  // the first one begins at 0
      const std::size_t at = std::min(offset - item.offset, item.bytes - 1);
      return static_cast<std::uint32_t>(at * pool_.threads() / item.bytes);
    };
    if (!cache_->Read(Image(), owner, pool_)) return false;
    if (options_.progress && !options_.progress("weights", store_.bytes_, store_.bytes_)) {
      return absl::CancelledError("loading was interrupted");
    }
    log::Info("weights: " + std::to_string(Image().size() >> 20) + " MiB read from " +
              cache_->path() + " in " + Text(SteadyNow() - begin_));
    return true;
  }

  absl::Status Pack() {
    Filling filling(store_, items_, options_);
    const absl::Status filled = filling.Run(pool_);
    unfit_ = filling.unfit();
    PENSTOCK_RETURN_IF_ERROR(filled);
    log::Info("weights: " + std::to_string(Image().size() >> 20) + " MiB read and packed in " +
              Text(SteadyNow() - begin_));
    store_.writer_ = cache_->Write(Image());
    return absl::OkStatus();
  }

  const Plan plan_;
  const Options& options_;
  const Kernels& kernels_;
  WorkerPool& pool_;
  std::string identity_;  // of the source; empty: no cache
  std::string changed_;
  WeightStore store_;
  std::vector<Item> items_;
  std::optional<PackedCache> cache_;
  Time begin_;
  bool unfit_ = false;
};

absl::StatusOr<WeightStore> WeightStore::Create(const Program& program, const Options& options,
                                                const Kernels& kernels, WorkerPool& pool) {
  return Making(program, options, kernels, pool).Run();
}

void WeightStore::SetPlaces(const std::vector<Item>& items) {
  for (const Item& item : items) {
    std::byte* place = region_.data() + item.offset;
    if (item.kind == Item::Kind::kMatrix) {
      matrices_.at(item.index).SetMemory(place);
    } else if (item.kind == Item::Kind::kTable) {
      tables_[item.index].data = place;
    } else if (item.kind == Item::Kind::kOverflow) {
      for (auto& [index, matrix] : matrices_) matrix.SetOverflow(place);
    } else {
      vectors_[item.index] = reinterpret_cast<const float*>(place);
    }
  }
}

const float* WeightStore::Vector(std::int32_t index) const {
  return index == kNoWeight ? nullptr : vectors_.at(index);
}

void WeightStore::EmbeddingRow(std::int32_t index, std::size_t row, float* out) const {
  const auto packed = matrices_.find(index);
  if (packed != matrices_.end()) {
    packed->second.UnpackRow(row, out);
    return;
  }
  const Table& table = tables_.at(index);
  for (std::size_t i = 0; i < table.columns; ++i) {
    out[i] = ReadElement(table.data, row * table.columns + i, table.dtype);
  }
}

}  // namespace penstock::shard::cpu
