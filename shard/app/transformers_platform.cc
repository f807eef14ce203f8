#include "shard/app/transformers_platform.h"

#include <memory>
#include <string>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "shard/backend/transformers/description.h"
#include "shard/backend/transformers/python_child.h"
#include "shard/backend/transformers/transformers_backend.h"

namespace penstock::shard {
namespace {

// The child of this shard, from the opening of the model on.
struct Engine {
  std::string python;
  std::uint32_t threads = 1;
  std::uint32_t block_size = 16;
  bool trust = false;
  std::shared_ptr<transformers::PythonChild> child = nullptr;
};

absl::StatusOr<Model> Open(Engine& engine, const ModelOptions& options) {
  PENSTOCK_ASSIGN_OR_RETURN(engine.child,
                            transformers::PythonChild::Start(engine.python, engine.threads));
  const std::string dtype = options.dtype ? std::string(DTypeName(*options.dtype)) : "auto";
  PENSTOCK_ASSIGN_OR_RETURN(const transformers::Frame said,
                            engine.child->Call({{"call", "describe"},
                                                {"folder", options.folder},
                                                {"dtype", dtype},
                                                {"trust_remote_code", engine.trust}}));
  PENSTOCK_ASSIGN_OR_RETURN(Model model, transformers::ModelOf(said.header));
  const auto* versions = said.header.if_contains("versions");
  if (versions != nullptr && versions->is_string()) {
    log::Info("engine: " + std::string(versions->as_string()) + ", run by " + engine.python +
              "; bytes of the KV cache are an estimate from config.json");
  }
  return model;
}

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const Engine& engine, const Model& model,
                                                     const LoadProgress& progress) {
  transformers::TransformersOptions options;
  options.child = engine.child;
  options.program = model.program;
  options.layout = {model.program.caches, engine.block_size, model.dtype};
  options.weight_bytes = model.parameters * DTypeBytes(model.dtype);
  return transformers::MakeTransformersBackend(std::move(options), progress);
}

}  // namespace

absl::StatusOr<Platform> OpenTransformersPlatform(const options::Values& values) {
  const auto engine = std::make_shared<Engine>();
  PENSTOCK_ASSIGN_OR_RETURN(engine->python, transformers::FindPython(values.GetString("python")));
  engine->threads = CpuThreads(values);
  engine->block_size = static_cast<std::uint32_t>(values.GetInt("block-size"));
  engine->trust = values.GetBool("trust-remote-code");
  Platform platform;
  const auto ranks = static_cast<std::uint32_t>(values.GetInt("local-ranks"));
  platform.rank_device = std::make_shared<HostDevice>(ranks);
  platform.open_model = [engine](const ModelOptions& options) { return Open(*engine, options); };
  platform.make_backend = [engine](const Model& model, const LoadProgress& progress) {
    return MakeBackend(*engine, model, progress);
  };
  platform.weight_bytes = [](const Model& model) -> absl::StatusOr<std::uint64_t> {
    return model.parameters * DTypeBytes(model.dtype);
  };
  platform.describe_backend = [engine](const Model&) -> absl::StatusOr<std::string> {
    return "transformers, run by " + engine->python;
  };
  return platform;
}

}  // namespace penstock::shard
