// The option rows of `penstock-replay what-if`.
#pragma once

#include <span>

#include "common/options/spec.h"

namespace penstock::replay {

std::span<const options::OptionSpec> WhatIfRows();

}  // namespace penstock::replay
