// NcclApi with NCCL 2.28. In the CUDA build only.
#pragma once

#include <memory>

#include "shard/parallel/nccl/nccl_api.h"

namespace penstock::shard {

std::unique_ptr<NcclApi> MakeNcclLibrary();

}  // namespace penstock::shard
