#include "launcher/preflight.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "common/exit_codes.h"
#include "common/status.h"
#include "launcher/unique_fd.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::launcher {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class ModelFolderTest : public ::testing::Test {
 protected:
  void WriteGoodModel() {
    dir_.Write("config.json", R"({"model_type": "llama"})");
    dir_.Write("tokenizer.json", "{}");
    dir_.Write("model.safetensors", "");
  }
  std::string Error(ModelUse use = ModelUse::kWeights) {
    return Message(CheckModelFolder(dir_.path(), use));
  }

  TempFolder dir_;
};

TEST_F(ModelFolderTest, AcceptsAModel) {
  WriteGoodModel();
  EXPECT_EQ(Error(), "");
}

TEST_F(ModelFolderTest, NamesTheMissingFile) {
  EXPECT_EQ(Error(), "--model-id " + dir_.path() +
                         ": config.json cannot be read: No such file or directory; the folder of a "
                         "model holds config.json, tokenizer.json and .safetensors files");
  dir_.Write("config.json", R"({"model_type": "llama"})");
  EXPECT_THAT(Error(), HasSubstr("tokenizer.json cannot be read"));
  dir_.Write("tokenizer.model", "");
  EXPECT_THAT(Error(), HasSubstr("tokenizer.model alone is not enough"));
  dir_.Write("tokenizer.json", "{}");
  EXPECT_THAT(Error(), HasSubstr("must hold a .safetensors file"));
  std::filesystem::remove(dir_.path() + "/config.json");
  EXPECT_EQ(Error(ModelUse::kTokenizer), "");
}

TEST_F(ModelFolderTest, AFolderOfModelsListsTheFirstFive) {
  for (const char* name : {"b", "a"}) dir_.Write(std::string(name) + "/config.json", "{}");
  dir_.Write("none/tokenizer.json", "{}");
  const std::string hint = "; give one of the model folders in it: " + dir_.path() + "/a, ";
  EXPECT_THAT(Error(), EndsWith(hint + dir_.path() + "/b"));
  for (const char* name : {"f", "e", "d", "c", "g"}) {
    dir_.Write(std::string(name) + "/config.json", "{}");
  }
  EXPECT_THAT(Error(), HasSubstr(hint));
  EXPECT_THAT(Error(), EndsWith("/d, " + dir_.path() + "/e and 2 more"));
}

TEST_F(ModelFolderTest, ABrokenConfigIsAnError) {
  WriteGoodModel();
  dir_.Write("config.json", "{\"model_type\": ");
  EXPECT_THAT(Error(), HasSubstr("config.json is not valid JSON at line 1, column "));
  dir_.Write("config.json", "[]");
  EXPECT_THAT(Error(), HasSubstr("config.json must be a JSON object"));
  dir_.Write("config.json", "{}");
  EXPECT_THAT(Error(), HasSubstr("config.json must have a model_type"));
}

TEST_F(ModelFolderTest, TheFolderMustExist) {
  EXPECT_THAT(Message(CheckModelFolder(dir_.path() + "/no", ModelUse::kWeights)),
              HasSubstr("no such folder"));
  const std::string file = dir_.Write("x", "");
  EXPECT_THAT(Message(CheckModelFolder(file, ModelUse::kWeights)),
              HasSubstr("must be a folder, not a file"));
}

// Listens on a free port of the loopback address.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    ::bind(fd_.get(), generic, size);
    ::listen(fd_.get(), 1);
    ::getsockname(fd_.get(), generic, &size);
    port_ = ::ntohs(address.sin_port);
  }
  int port() const { return port_; }

 private:
  UniqueFd fd_;
  int port_ = 0;
};

TEST(AddressTest, ABusyPortIsNamedWithItsHost) {
  int port = 0;
  {
    const Listener listener;
    port = listener.port();
    EXPECT_THAT(Message(CheckAddress("127.0.0.1", port)),
                HasSubstr("--hostname 127.0.0.1 --port " + std::to_string(port) +
                          ": in use by another program; choose another port, such as --port "));
  }
  EXPECT_TRUE(CheckAddress("127.0.0.1", port).ok());
}

TEST(AddressTest, AnAddressOfAnotherMachineIsRefused) {
  EXPECT_THAT(Message(CheckAddress("192.0.2.1", 4711)), HasSubstr("cannot listen there"));
  EXPECT_THAT(Message(CheckAddress("192.0.2.1", 0)), HasSubstr("cannot listen there"));
  EXPECT_THAT(Message(CheckAddress("no host", 0)), HasSubstr("--hostname no host: must be"));
  EXPECT_TRUE(CheckAddress("127.0.0.1", 0).ok());
}

TEST(TorchFolderTest, AWrongVariableIsNamedWithItsValue) {
  const TempFolder folder;
  EXPECT_TRUE(CheckTorchFolder(nullptr).ok());
  EXPECT_TRUE(CheckTorchFolder("").ok());
  const std::string wrong = Message(CheckTorchFolder("/nope"));
  EXPECT_EQ(wrong,
            "PENSTOCK_TORCH_DIR=/nope: must be the folder of the torch 2.11 package: "
            "/nope/lib/libtorch_cpu.so: No such file or directory");
  folder.Write("lib/libtorch_cpu.so", "");
  EXPECT_TRUE(CheckTorchFolder(folder.path().c_str()).ok());
}

TEST(CheckBeforeStartTest, EachProblemHasItsExitCode) {
  TempFolder dir;
  Machine machine;
  options::Values values(options::ProgramFor(options::kLauncher));
  ASSERT_TRUE(values.Set("model-id", dir.path()).ok());
  ASSERT_TRUE(values.Set("port", "0").ok());
  EXPECT_EQ(CheckBeforeStart(values, machine).exit_code, kExitModel);
  dir.Write("config.json", R"({"model_type": "llama"})");
  dir.Write("tokenizer.json", "{}");
  dir.Write("model.safetensors", "");
  EXPECT_EQ(CheckBeforeStart(values, machine).error, "");
  dir.Write("config.json", R"({"model_type": "llama", "max_position_embeddings": 512})");
  ASSERT_TRUE(values.Set("max-total-tokens", "513").ok());
  EXPECT_EQ(CheckBeforeStart(values, machine).exit_code, kExitUsage);
  EXPECT_THAT(CheckBeforeStart(values, machine).error,
              HasSubstr("--max-total-tokens 513: must be at most 512, the model's context"));
  ASSERT_TRUE(values.Set("max-total-tokens", "512").ok());
  EXPECT_EQ(CheckBeforeStart(values, machine).error, "");
  const Listener listener;
  ASSERT_TRUE(values.Set("port", std::to_string(listener.port())).ok());
  EXPECT_EQ(CheckBeforeStart(values, machine).exit_code, kExitAddress);
  ASSERT_TRUE(values.Set("device", "cuda").ok());
  EXPECT_EQ(CheckBeforeStart(values, machine).exit_code, kExitDevice);
  EXPECT_THAT(CheckBeforeStart(values, machine).error, HasSubstr("run `make cuda`"));
  machine.cuda_shard = true;
  EXPECT_EQ(CheckBeforeStart(values, machine).exit_code, kExitDevice);
  EXPECT_THAT(CheckBeforeStart(values, machine).error, HasSubstr("no driver is loaded"));
  machine.gpus = {"0"};
  EXPECT_EQ(CheckBeforeStart(values, machine).exit_code, kExitAddress);
  ASSERT_TRUE(values.Set("backend", "cpu").ok());
  EXPECT_THAT(CheckBeforeStart(values, machine).error, HasSubstr("--backend cpu"));
  ASSERT_TRUE(values.Set("device", "cpu").ok());
  ASSERT_TRUE(values.Set("backend", "cuda").ok());
  EXPECT_THAT(CheckBeforeStart(values, machine).error, HasSubstr("--backend cuda"));
  ASSERT_TRUE(values.Set("tokens", "echo").ok());
  EXPECT_EQ(CheckBeforeStart(values, machine).exit_code, kExitUsage);
  EXPECT_THAT(CheckBeforeStart(values, machine).error, HasSubstr("--tokens echo"));
}

TEST(CheckBeforeStartTest, OptionsThatDoNotFitTheModelAreErrors) {
  TempFolder dir;
  dir.Write("config.json",
            R"({"model_type": "llama", "max_position_embeddings": 512, "num_attention_heads": 12,
                "num_key_value_heads": 4, "intermediate_size": 120})");
  dir.Write("tokenizer.json", "{}");
  dir.Write("model.safetensors", "");
  const auto check = [&](const char* name, const char* value) {
    options::Values values(options::ProgramFor(options::kLauncher));
    for (const auto& [key, text] : {std::pair<const char*, std::string>{"model-id", dir.path()},
                                    {"hostname", "127.0.0.1"},
                                    {"port", "0"},
                                    {name, value}}) {
      EXPECT_TRUE(values.Set(key, text).ok());
    }
    const Problem problem = CheckBeforeStart(values, Machine());
    EXPECT_EQ(problem.exit_code, problem.error.empty() ? kExitOk : kExitUsage);
    return problem.error;
  };
  EXPECT_EQ(check("max-input-tokens", "512"),
            "--max-input-tokens 512: must be below 512, the model's context");
  EXPECT_EQ(check("max-input-tokens", "511"), "");
  EXPECT_EQ(check("num-shard", "5"),
            "--num-shard 5: must be a divisor of the model's 12 attention heads: 1, 2, 4 or 12");
  EXPECT_EQ(
      check("num-shard", "3"),
      "--num-shard 3: must be a divisor or a multiple of the model's 4 K/V heads: 1, 2, 4 or 12");
  EXPECT_EQ(check("num-shard", "12"), "");
  // With a vision tower, of the text model.
  dir.Write("config.json", R"({"model_type": "mistral3", "text_config": {
    "num_attention_heads": 12, "num_key_value_heads": 4, "intermediate_size": 120}})");
  EXPECT_EQ(check("num-shard", "5"),
            "--num-shard 5: must be a divisor of the model's 12 attention heads: 1, 2, 4 or 12");
}

TEST(DeviceWarningsTest, AGpuOptionWithoutAGpuIsAWarning) {
  options::Values values(options::ProgramFor(options::kLauncher));
  Machine machine;
  EXPECT_TRUE(DeviceWarnings(values, machine).empty());
  ASSERT_TRUE(values.Set("cuda-memory-fraction", "0.5").ok());
  EXPECT_THAT(DeviceWarnings(values, machine),
              ::testing::ElementsAre(HasSubstr("--cuda-memory-fraction 0.5: has no effect")));
  machine.cuda_shard = true;
  machine.gpus = {"0"};
  EXPECT_TRUE(DeviceWarnings(values, machine).empty());
}

}  // namespace
}  // namespace penstock::launcher
