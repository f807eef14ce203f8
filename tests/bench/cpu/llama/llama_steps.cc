// Runs llama.cpp's decode steps and prompts one by one. Reads commands from standard input and
// answers each with one line of JSON, as penstock-shard-bench does. So the two can alternate within
// a second on a machine whose memory speed varies. Settings are those of llama-bench. build_llama
// builds it.
//
//   llama-steps MODEL.gguf CONTEXT THREADS
//
//   decode COUNT           COUNT tokens after CONTEXT others, always the same positions
//   prefill TOKENS COUNT   COUNT prompts of TOKENS, each alone
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <ggml-cpu.h>
#include <llama.h>

namespace {

constexpr std::int32_t kMostTokens = 2048;  // of a batch and of what is added to the context

[[noreturn]] void Fail(const std::string& why) {
  std::cerr << "llama-steps: " << why << '\n';
  std::exit(1);
}

class Steps {
 public:
  Steps(const char* file, std::int32_t context, std::int32_t threads) : context_(context) {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    llama_backend_init();
    model_ = llama_model_load_from_file(file, llama_model_default_params());
    if (model_ == nullptr) Fail(std::string("cannot load ") + file);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<std::uint32_t>(context + kMostTokens);
    params.n_batch = kMostTokens;
    params.n_ubatch = 512;
    params.n_threads = params.n_threads_batch = threads;
    state_ = llama_init_from_model(model_, params);
    if (state_ == nullptr) Fail("cannot make a context");
    ggml_threadpool_params pool = ggml_threadpool_params_default(threads);
    pool_ = ggml_threadpool_new(&pool);
    llama_attach_threadpool(state_, pool_, nullptr);
    Add(context_);
  }

  ~Steps() {
    llama_free(state_);
    ggml_threadpool_free(pool_);
    llama_model_free(model_);
  }

  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  std::vector<double> Decode(std::int32_t count) {
    std::vector<double> seconds;
    for (std::int32_t i = 0; i < count; ++i) seconds.push_back(Add(1));
    llama_memory_seq_rm(llama_get_memory(state_), 0, context_, -1);
    return seconds;
  }

  std::vector<double> Prefill(std::int32_t tokens, std::int32_t count) {
    std::vector<double> seconds;
    for (std::int32_t i = 0; i < count; ++i) {
      llama_memory_clear(llama_get_memory(state_), true);
      seconds.push_back(Add(tokens));
    }
    llama_memory_clear(llama_get_memory(state_), true);
    Add(context_);
    return seconds;
  }

 private:
  // Seconds of `count` more tokens in one call, with the logits of the last.
  double Add(std::int32_t count) {
    const std::int32_t vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model_));
    std::vector<llama_token> tokens;
    for (std::int32_t i = 0; i < count; ++i) {
      tokens.push_back(static_cast<llama_token>(random_() % static_cast<unsigned>(vocabulary)));
    }
    const auto begin = std::chrono::steady_clock::now();
    if (llama_decode(state_, llama_batch_get_one(tokens.data(), count)) != 0) Fail("llama_decode");
    llama_synchronize(state_);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  const std::int32_t context_;
  std::mt19937 random_{7};
  llama_model* model_ = nullptr;
  llama_context* state_ = nullptr;
  ggml_threadpool_t pool_ = nullptr;
};

std::vector<double> Answer(Steps& steps, const std::string& line) {
  std::istringstream words(line);
  std::string command;
  std::int32_t first = 0;
  std::int32_t second = 0;
  words >> command >> first;
  const bool prompts = command == "prefill";
  if (prompts) words >> second;
  const bool known = prompts || command == "decode";
  if (!known || words.fail() || first < 1 || first > kMostTokens) Fail("not a command: " + line);
  return prompts ? steps.Prefill(first, second) : steps.Decode(first);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) Fail("Usage: llama-steps MODEL.gguf CONTEXT THREADS");
  Steps steps(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
  std::puts("{}");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::string seconds;
    for (const double taken : Answer(steps, line)) {
      seconds += (seconds.empty() ? "" : ", ") + std::to_string(taken);
    }
    std::printf("{\"seconds\": [%s]}\n", seconds.c_str());
    std::fflush(stdout);
  }
}
