#include <utility>

#include "common/status.h"
#include "shard/app/reference_choice.h"
#include "shard/backend/reference/reference_backend.h"

namespace penstock::shard {

absl::Status CheckReference() { return absl::OkStatus(); }

absl::StatusOr<std::unique_ptr<Backend>> MakeReference(const ReferenceChoice& choice,
                                                       const Model& model,
                                                       const LoadProgress& progress) {
  ReferenceOptions reference;
  reference.program = model.program;
  PENSTOCK_ASSIGN_OR_RETURN(reference.weights, model.Load(progress));
  reference.dtype = model.dtype;
  reference.device = choice.device;
  reference.stream = choice.stream;
  reference.block_size = choice.block_size;
  reference.cpu_threads = choice.cpu_threads;
  return MakeReferenceBackend(std::move(reference));
}

}  // namespace penstock::shard
