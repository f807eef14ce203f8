// --serving-properties: turns a file, folder or environment of DJL-Serving into options. Its only
// effect is to read the file.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/options/values.h"

namespace penstock::launcher {

// Where containers of DJL-Serving find their model.
inline constexpr std::string_view kDjlModelFolder = "/opt/ml/model";

struct ServingSettings {
  std::vector<options::ConfigEntry> entries;  // of two with one key the later counts
  std::vector<std::string> notes;             // effects that the author of the file may not expect
  std::vector<std::string> warnings;          // unknown keys
};

// One variable of the environment.
struct Variable {
  std::string name;
  std::string value;
};

// `path`: a serving.properties file or the folder that holds it, or a model's folder without one.
// InvalidArgument with one line for each key that is not taken: file, line, key, value, reason.
// `batch_size`: the value of a --max-batch-size that overrides the file; empty: none. The queue of
// DJL-Serving excludes the running batch.
absl::StatusOr<ServingSettings> ReadServingProperties(const std::string& path,
                                                      const std::vector<Variable>& environment,
                                                      const std::string& batch_size = {});

// The same for a text. Messages use `name` as the file, and `folder` is its folder.
absl::StatusOr<ServingSettings> ParseServingProperties(std::string_view text,
                                                       const std::string& name,
                                                       const std::string& folder,
                                                       const std::vector<Variable>& environment,
                                                       const std::string& batch_size = {});

// A source for options::ReadCommandLine. Reads the file if --serving-properties or --api-profile
// djl asks for it, and the environment. Keeps the notes of the file until the log is set up.
class ServingSource {
 public:
  options::ReadMore Reader();
  // "serving.properties sets: --port 8080": what it adds to `values`, without what something else
  // overrides. Empty if it adds nothing.
  std::string Describe(const options::Values& values) const;
  // Logs that and the notes. Call it once.
  void Tell(const options::Values& values) const;

 private:
  absl::StatusOr<std::vector<options::ConfigEntry>> Read(
      const std::function<std::string(std::string_view)>& text_of);

  std::string from_;  // "serving.properties sets"; empty: not asked for
  ServingSettings settings_;
};

}  // namespace penstock::launcher
