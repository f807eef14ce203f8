#include "tests/gpu/bench/options.h"

#include <charconv>
#include <string_view>

namespace penstock::shard::cuda {

std::optional<BenchOptions> ReadBenchOptions(int argc, char** argv) {
  BenchOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--made-weights") {
      options.made_weights = true;
    } else if (word == "--batch-invariant") {
      options.batch_invariant = true;
    } else if (word == "--without" && i + 1 < argc) {
      const auto parts = PartsWithout(argv[++i]);
      if (!parts.ok()) return std::nullopt;
      options.parts = *parts;
    } else if (word == "--weights" && i + 1 < argc) {
      options.quantization = ParseQuantization(argv[++i]);
      if (options.quantization == Quantization::kNone) return std::nullopt;
    } else if (word == "--kv" && i + 1 < argc) {
      const auto type = ParseKvType(argv[++i]);
      if (!type.has_value()) return std::nullopt;
      options.kv_type = *type;
    } else if (word == "--profiled-rows" && i + 1 < argc) {
      const std::string_view rows = argv[++i];
      std::from_chars(rows.data(), rows.data() + rows.size(), options.profiled_rows);
      if (options.profiled_rows == 0) return std::nullopt;
    } else if (word.starts_with("--") || !options.folder.empty()) {
      return std::nullopt;
    } else {
      options.folder = word;
    }
  }
  if (options.folder.empty()) return std::nullopt;
  return options;
}

}  // namespace penstock::shard::cuda
