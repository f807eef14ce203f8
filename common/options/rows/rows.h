// The rows of the options table, one function per group of --help (common/options/table.cc).
#pragma once

#include <span>

#include "common/options/spec.h"

namespace penstock::options {

std::span<const OptionSpec> ModelRows();          // which model, in which precision
std::span<const OptionSpec> MachineRows();        // devices, ranks, threads, memory
std::span<const OptionSpec> ServerRows();         // the HTTP listener and its workers
std::span<const OptionSpec> CompatibilityRows();  // what clients and files of other servers expect
std::span<const OptionSpec> LimitRows();          // what one request may ask for
std::span<const OptionSpec> SchedulingRows();     // steps, batches, admission
std::span<const OptionSpec> ProcessRows();        // processes, sockets, start and stop
std::span<const OptionSpec> LogRows();            // logs, traces and recordings
std::span<const OptionSpec> SimulationRows();     // penstock-simshard only
std::span<const OptionSpec> TgiRows();            // options of text-generation-inference alone
std::span<const OptionSpec> ProgramRows();        // --help, --version, ...: for every program

}  // namespace penstock::options
