// The table's rows, one function per group of --help. common/options/table.cc joins them.
#pragma once

#include <span>

#include "common/options/spec.h"

namespace penstock::options {

std::span<const OptionSpec> ProgramRows();     // --help, --version, ...: for every program
std::span<const OptionSpec> ModelRows();       // which model, how it is loaded and stored
std::span<const OptionSpec> ServerRows();      // the HTTP listener and its workers
std::span<const OptionSpec> DjlRows();         // what files and clients of DJL-Serving expect
std::span<const OptionSpec> LimitRows();       // what one request may ask for
std::span<const OptionSpec> SchedulingRows();  // steps, batches, admission
std::span<const OptionSpec> ProcessRows();     // processes, sockets, start and stop
std::span<const OptionSpec> LogRows();         // logs and recordings
std::span<const OptionSpec> SimulationRows();  // penstock-simshard only
std::span<const OptionSpec> TgiRows();         // text-generation-inference's that are not ours

}  // namespace penstock::options
