// --serving-properties: a file (or folder, or environment) written for DJL-Serving as options of
// ours. Pure but for reading the file.
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
  std::vector<options::ConfigEntry> entries;  // the later of two with one key counts
  std::vector<std::string> notes;             // what a reader of the file would not expect
  std::vector<std::string> warnings;          // unknown keys
};

// One variable of the environment.
struct Variable {
  std::string name;
  std::string value;
};

// `path`: a serving.properties file or the folder that holds it, or a model's folder without one.
// InvalidArgument with one line for each key that is not taken: file, line, key, value, reason.
// `batch_size`: of a --max-batch-size that counts more than the file; empty: none. The queue stands
// before the batch that runs.
absl::StatusOr<ServingSettings> ReadServingProperties(const std::string& path,
                                                      const std::vector<Variable>& environment,
                                                      const std::string& batch_size = {});

// The same for a text; `name` stands for the file in messages, `folder` is where it lies.
absl::StatusOr<ServingSettings> ParseServingProperties(std::string_view text,
                                                       const std::string& name,
                                                       const std::string& folder,
                                                       const std::vector<Variable>& environment,
                                                       const std::string& batch_size = {});

// For options::ReadCommandLine: reads the file when --serving-properties or --api-profile djl asks
// for it, and keeps its notes until the log is set up. Uses the process's environment.
class ServingSource {
 public:
  options::ReadMore Reader();
  // Said once, with the options that came of it.
  void Tell() const;

 private:
  absl::StatusOr<std::vector<options::ConfigEntry>> Read(
      const std::function<std::string(std::string_view)>& text_of);

  std::string path_;  // empty: not asked for
  ServingSettings settings_;
};

}  // namespace penstock::launcher
