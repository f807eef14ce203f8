#include "sim/fleet/warm_up_table.h"

namespace penstock::sim {

Calibration WarmUpTable(const StepTime& step_time) {
  Calibration table;
  const auto add = [&](std::uint32_t prompt, std::uint32_t rows, std::uint32_t context) {
    scheduler::StepShape shape;
    if (prompt > 0) shape.AddChunk(context, prompt);
    if (rows > 0) shape.AddDecode(context, rows);
    table.samples.push_back({prompt, rows, context, step_time(shape)});
  };
  for (const std::uint32_t tokens : {1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096}) {
    add(tokens, 0, 0);
  }
  for (const std::uint32_t rows : {1, 8, 32, 128}) {
    for (const std::uint32_t context : {128, 1024, 4096, 16384}) add(0, rows, context);
  }
  for (const std::uint32_t chunk : {256, 1024}) {
    for (const std::uint32_t cached : {0, 4096, 16384}) add(chunk, 0, cached);
  }
  return table;
}

}  // namespace penstock::sim
