// The machine types of a plan, from a YAML file (docs/how-to/plan.md).
//
//   h100:                    # any name
//     model: h100            # step times of a known machine: a100, h100 or h200
//     count: 8               # ranks (GPUs) in all
//     per_host: 8            # ranks of one host
//     price: 2.9             # of one rank for an hour
//     watts: 700             # of one rank
//   cpu:
//     tables: {1: one.warmup, 2: two.log}    # or measured step times, by ranks of a group
//     kv_memory: 4           # GB of one rank
//     count: 4
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/time.h"

namespace penstock::plan {

// What scales a measured table to other numbers of ranks (decision 0066).
struct Interconnect {
  Duration latency{0};          // of an all-reduce
  double bytes_per_second = 0;  // of a rank, in each direction
};

struct MachineType {
  std::string name;
  std::string model;                  // of MachineModel; empty: measured
  std::map<int, std::string> tables;  // file by ranks of a group
  std::optional<Interconnect> interconnect;
  std::uint32_t count = 1;
  std::uint32_t per_host = 8;
  double price = 0;
  double watts = 0;
  double memory = 0;     // of a rank, bytes; 0: that of the named machine
  double kv_memory = 0;  // of a rank, bytes; 0: what the weights leave of `memory`
  bool fp8 = false;

  std::string where;  // "machines.yaml:3"
};

// `name` is the file's, for errors: one line with place, field, value and limit. Paths of tables
// are relative to `folder`.
absl::StatusOr<std::vector<MachineType>> ParseMachines(const std::string& text,
                                                       const std::string& name,
                                                       const std::string& folder);
absl::StatusOr<std::vector<MachineType>> ReadMachines(const std::string& path);

}  // namespace penstock::plan
