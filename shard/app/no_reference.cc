#include "shard/app/reference_choice.h"

namespace penstock::shard {

absl::Status CheckReference() {
  return absl::UnimplementedError(
      "backend reference is in penstock-shard-torch, which the launcher starts with --backend "
      "reference; `make torch` builds it");
}

absl::StatusOr<std::unique_ptr<Backend>> MakeReference(const ReferenceChoice&, const Model&,
                                                       const LoadProgress&) {
  return CheckReference();
}

}  // namespace penstock::shard
