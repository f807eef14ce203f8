#include "common/version.h"

namespace penstock {

std::string_view Version() { return PENSTOCK_VERSION; }

}  // namespace penstock
