#include <unistd.h>

#include <cstdio>

#include "common/status.h"
#include "tools/make-model/make_model.h"
#include "tools/make-model/options.h"

int main(int argc, char** argv) {
  namespace make_model = penstock::make_model;
  const make_model::CommandLine line = make_model::ReadCommandLine(argc, argv);
  if (!line.config.ok()) return line.exit_code;
  int shown = -1;
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const auto progress = [&shown, terminal](std::uint64_t done, std::uint64_t total) {
    const int percent = static_cast<int>(done * 100 / total);
    if (!terminal || percent == shown) return;
    shown = percent;
    std::fprintf(stderr, "\rwriting weights %3d%%%s", percent, done == total ? "\n" : "");
  };
  const auto result = make_model::MakeModel(*line.config, progress);
  if (!result.ok()) {
    std::fprintf(stderr, "penstock-make-model: error: %s\n",
                 penstock::Message(result.status()).c_str());
    return 1;
  }
  std::printf("%s: %s %s, %.1f M parameters, %.1f MB in %u file(s)\n", line.config->output.c_str(),
              line.config->shape.c_str(), line.config->type.c_str(), result->parameters / 1e6,
              result->bytes / 1e6, result->files);
  return 0;
}
