// Gives the weights of one rank row by row, from the files of a checkpoint or from memory. A
// backend packs rows as it reads them, so that it never holds the weights twice.
//
// Threading: immutable; ReadRows may be called from several threads. The checkpoint, plan or views
// of a source outlive it.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "shard/weights/formats/stored_format.h"
#include "shard/weights/loader.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

constexpr std::uint64_t Int4RowFloats(std::uint64_t columns) {
  return columns + 2 * ((columns + kInt4Columns - 1) / kInt4Columns);
}

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // Targets of the plan.
  virtual std::int32_t Count() const = 0;
  // Rows and columns of WeightPlan::targets[index]; a vector has one column.
  virtual std::uint64_t Rows(std::int32_t index) const = 0;
  virtual std::uint64_t Columns(std::int32_t index) const = 0;
  // The type that ReadRows gives.
  virtual DType dtype() const = 0;

  // Rows [first, first + count) of a target. Errors name the file.
  virtual absl::Status ReadRows(std::int32_t index, std::uint64_t first, std::uint64_t count,
                                void* out) const = 0;

  // Whether the checkpoint stores the target's rows as integers of 4 bits in groups that fit
  // kInt4Columns (formats/stored_format.h).
  virtual bool HasInt4(std::int32_t) const { return false; }
  // Then, rows [first, first + count) as float32: of each the values, then the scales and then the
  // zero points of kInt4Columns columns each. A row has Int4RowFloats numbers.
  virtual absl::Status ReadInt4Rows(std::int32_t, std::uint64_t, std::uint64_t, float*) const {
    return absl::UnimplementedError("not stored as integers of 4 bits");
  }

  // A text that differs for other weights. Empty: not known.
  virtual std::string Identity() const { return ""; }

  // The time of the last change (SafetensorsFile::Noted). With the same Identity and another Noted,
  // weights may differ where Identity does not look.
  virtual std::string Noted() const { return ""; }
};

class CheckpointSource final : public WeightSource {
 public:
  // The plan must have passed CheckParts.
  CheckpointSource(const Checkpoint& checkpoint, const WeightPlan& plan, DType dtype)
      : checkpoint_(checkpoint), plan_(plan), dtype_(dtype) {}

  std::int32_t Count() const override { return static_cast<std::int32_t>(plan_.targets.size()); }
  std::uint64_t Rows(std::int32_t index) const override { return Target(index).rows; }
  std::uint64_t Columns(std::int32_t index) const override { return Target(index).columns; }
  DType dtype() const override { return dtype_; }
  absl::Status ReadRows(std::int32_t index, std::uint64_t first, std::uint64_t count,
                        void* out) const override;
  bool HasInt4(std::int32_t index) const override;
  absl::Status ReadInt4Rows(std::int32_t index, std::uint64_t first, std::uint64_t count,
                            float* out) const override;
  std::string Noted() const override { return checkpoint_.Noted(); }
  // Path, size, time of change and checksums of pieces of each file, and where each row of each
  // target is stored. Reads those pieces.
  std::string Identity() const override;

 private:
  const WeightTarget& Target(std::int32_t index) const {
    return plan_.targets[static_cast<std::size_t>(index)];
  }
  absl::Status ReadPart(const WeightPart& part, std::uint64_t row, std::uint64_t count,
                        char* out) const;

  absl::Status ReadTransposed(const WeightPart& part, std::uint64_t row, std::uint64_t count,
                              char* out) const;
  // All bytes of the part's matrix. The last one is kept, since all of its rows are read one after
  // the other.
  absl::StatusOr<std::shared_ptr<const std::vector<char>>> WholeMatrix(
      const CheckpointTensor& tensor, const WeightPart& part) const;

  const Checkpoint& checkpoint_;
  const WeightPlan& plan_;
  const DType dtype_;
  mutable std::mutex mutex_;
  mutable const CheckpointTensor* kept_ = nullptr;
  mutable std::uint64_t kept_matrix_ = 0;
  mutable std::shared_ptr<const std::vector<char>> kept_bytes_;
};

class LoadedSource final : public WeightSource {
 public:
  // Views of host memory, all of one dtype; at least one.
  explicit LoadedSource(const std::vector<TensorView>& views) : views_(views) {}

  std::int32_t Count() const override { return static_cast<std::int32_t>(views_.size()); }
  std::uint64_t Rows(std::int32_t index) const override {
    return static_cast<std::uint64_t>(View(index).shape[0]);
  }
  std::uint64_t Columns(std::int32_t index) const override {
    return View(index).rank < 2 ? 1 : static_cast<std::uint64_t>(View(index).shape[1]);
  }
  DType dtype() const override { return views_.front().dtype; }
  absl::Status ReadRows(std::int32_t index, std::uint64_t first, std::uint64_t count,
                        void* out) const override;

 private:
  const TensorView& View(std::int32_t index) const {
    return views_[static_cast<std::size_t>(index)];
  }

  const std::vector<TensorView>& views_;
};

}  // namespace penstock::shard
