// Bodies of the dialects' requests: a line with the path, then the body.
#include <array>
#include <span>

#include "common/fnv.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/targets/exchanges.h"

namespace penstock::fuzz {
namespace {

using Paths = std::span<const std::string_view>;

// A damaged path is one of the others, so that each input reaches a reader.
std::string_view PathOf(std::string_view line, Paths paths) {
  for (const std::string_view path : paths) {
    if (path == line) return path;
  }
  return paths[Fnv1a(line) % paths.size()];
}

void ReadBody(std::string_view bytes, Server server, Paths paths) {
  router::RequestHead head;
  head.method = "POST";
  head.path = PathOf(TakeLine(bytes), paths);
  head.request_id = "fuzz";
  head.headers = {{"content-type", "application/json"}};
  Exchanges(server).Answer(std::move(head), std::string(bytes), bytes.size());
}

}  // namespace

void ReadAnthropic(std::string_view bytes) {
  static constexpr std::array<std::string_view, 2> kPaths = {"/v1/messages",
                                                             "/v1/messages/count_tokens"};
  ReadBody(bytes, Server::kText, kPaths);
}

void ReadDjl(std::string_view bytes) {
  static constexpr std::array<std::string_view, 3> kPaths = {"/predictions/demo", "/models/demo",
                                                             "/invocations"};
  ReadBody(bytes, Server::kText, kPaths);
}

void ReadEffective(std::string_view bytes) {
  static constexpr std::array<std::string_view, 1> kPaths = {"/inference"};
  ReadBody(bytes, Server::kText, kPaths);
}

void ReadNative(std::string_view bytes) {
  static constexpr std::array<std::string_view, 1> kPaths = {"/adapters"};
  ReadBody(bytes, Server::kText, kPaths);
}

void ReadOllama(std::string_view bytes) {
  static constexpr std::array<std::string_view, 3> kPaths = {"/api/chat", "/api/generate",
                                                             "/api/show"};
  ReadBody(bytes, Server::kText, kPaths);
}

void ReadOpenai(std::string_view bytes) {
  static constexpr std::array<std::string_view, 4> kPaths = {
      "/v1/chat/completions", "/v1/completions", "/detokenize", "/tokenize"};
  ReadBody(bytes, Server::kText, kPaths);
}

void ReadResponses(std::string_view bytes) {
  static constexpr std::array<std::string_view, 2> kPaths = {"/v1/responses",
                                                             "/v1/responses/resp_1/cancel"};
  ReadBody(bytes, Server::kText, kPaths);
}

void ReadSglang(std::string_view bytes) {
  static constexpr std::array<std::string_view, 3> kPaths = {"/generate", "/flush_cache",
                                                             "/concate_and_append_request"};
  ReadBody(bytes, Server::kText, kPaths);
}

void ReadTgi(std::string_view bytes) {
  static constexpr std::array<std::string_view, 9> kPaths = {
      "/generate",    "/generate_stream", "/",
      "/vertex",      "/tokenize",        "/chat_tokenize",
      "/invocations", "/v1/completions",  "/v1/chat/completions"};
  ReadBody(bytes, Server::kTgi, kPaths);
}

void ReadVectors(std::string_view bytes) {
  static constexpr std::array<std::string_view, 5> kPaths = {"/v1/embeddings", "/embed", "/rerank",
                                                             "/v1/score", "/v1/classify"};
  ReadBody(bytes, Server::kVectors, kPaths);
}

}  // namespace penstock::fuzz
