// Where the goldens of the model types and their checkpoints lie.
// PENSTOCK_MODEL_ORACLE: a folder with goldens/ and checkpoints/ of another seed
// (`make oracle ARGS="--seed N --out FOLDER"`).
#pragma once

#include <string>
#include <vector>

namespace penstock::shard {

std::string GoldenFolder();

// The build writes the checkpoints beside the test programs.
std::string CheckpointFolder();

// The adapters of tests/oracle/adapters.py, which the build writes too.
std::string AdapterFolder();

// TYPE-VARIANT of each golden, sorted. Each has a checkpoint of that name.
std::vector<std::string> GoldenNames();

// Why the shard does not serve this variant of a type that it serves; empty if it does.
std::string TodoOf(const std::string& name);

}  // namespace penstock::shard
