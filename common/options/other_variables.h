// Environment variables whose names begin like those of options, but which set no option.
#pragma once

#include <string_view>

namespace penstock::options {

// Kubernetes gives every pod <SERVICE>_PORT=tcp://address:port variables; a service called
// "penstock" would set ours.
bool IsKubernetesServiceLink(std::string_view text);

// Variables that Kubernetes sets for a service, such as PENSTOCK_SERVICE_HOST. Services whose names
// only begin with "penstock" count too.
bool IsKubernetesServiceName(std::string_view name);

// Variables that no option reads: those of the build, the tests and the launcher's children.
bool IsOtherVariable(std::string_view name);

}  // namespace penstock::options
