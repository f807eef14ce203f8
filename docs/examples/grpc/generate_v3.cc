// A client of generate.v3.TextGenerationService: Prefill, then Decode until the request has ended.
//
// usage: example_generate_v3 SOCKET PROMPT [MAX_NEW_TOKENS]
//
// SOCKET is that of rank 0, which names the other ranks. Every rank gets every call at the same
// time. A call that reaches only some of them ends with DEADLINE_EXCEEDED.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "docs/examples/grpc/arguments.h"
#include "generate/v3/generate.grpc.pb.h"

namespace v3 = generate::v3;
using Stub = v3::TextGenerationService::Stub;

namespace {

std::unique_ptr<Stub> Connect(const std::string& path) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return v3::TextGenerationService::NewStub(
      grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments));
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
}

std::vector<std::unique_ptr<Stub>> ConnectAll(const std::string& path) {
  grpc::ClientContext context;
  SetDeadline(context);
  v3::ServiceDiscoveryResponse found;
  std::vector<std::unique_ptr<Stub>> ranks;
  if (!Connect(path)->ServiceDiscovery(&context, {}, &found).ok()) return ranks;
  const std::string scheme = "unix://";
  for (const std::string& url : found.urls()) ranks.push_back(Connect(url.substr(scheme.size())));
  return ranks;
}

// One step on all ranks. Rank 0 alone reports generations; all answer the same batch.
template <class Request, class Response>
bool Step(const std::vector<std::unique_ptr<Stub>>& ranks, const Request& request,
          grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
          Response& answer) {
  std::vector<std::future<grpc::Status>> calls;
  std::vector<Response> answers(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    calls.push_back(std::async(std::launch::async, [&, rank] {
      grpc::ClientContext context;
      SetDeadline(context);
      return (ranks[rank].get()->*method)(&context, request, &answers[rank]);
    }));
  }
  bool all = true;
  for (std::future<grpc::Status>& call : calls) {
    const grpc::Status status = call.get();
    if (!status.ok()) std::cerr << status.error_message() << "\n";
    all = all && status.ok();
  }
  if (all) answer = std::move(answers.front());
  return all;
}

// Prints the result of a step for the one request. Returns true when it has ended.
template <class Response>
bool Print(const Response& answer) {
  for (const v3::Generation& generation : answer.generations()) {
    for (const std::string& text : generation.tokens().texts()) std::cout << text << std::flush;
  }
  return !answer.has_batch();
}

int Generate(const std::vector<std::unique_ptr<Stub>>& ranks, const std::string& prompt,
             std::uint32_t max_new_tokens) {
  v3::PrefillRequest prefill;
  prefill.mutable_batch()->set_id(0);
  prefill.mutable_batch()->set_size(1);
  v3::Request& request = *prefill.mutable_batch()->add_requests();
  request.set_inputs(prompt);
  request.mutable_input_chunks()->add_chunks()->set_text(prompt);
  request.set_add_special_tokens(true);
  request.mutable_stopping_parameters()->set_max_new_tokens(max_new_tokens);

  v3::PrefillResponse first;
  if (!Step(ranks, prefill, &Stub::Prefill, first)) return 1;
  bool ended = Print(first);
  v3::DecodeRequest decode;
  *decode.add_batches() = first.batch();
  while (!ended) {
    v3::DecodeResponse next;
    if (!Step(ranks, decode, &Stub::Decode, next)) return 1;
    ended = Print(next);
    *decode.mutable_batches(0) = next.batch();
  }
  std::cout << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  const bool asks = first == "--help" || first == "-h";
  if (asks || argc < 3 || argc > 4) {
    (asks ? std::cout : std::cerr) << "Usage: " << argv[0] << " SOCKET PROMPT [MAX_NEW_TOKENS]\n";
    return asks ? 0 : 2;
  }
  const auto tokens = argc > 3 ? ParseNumber<std::uint32_t>("MAX_NEW_TOKENS", argv[3], 1) : 20;
  const auto ranks = ConnectAll(argv[1]);
  if (ranks.empty()) {
    std::cerr << "no shard answers at " << argv[1] << "\n";
    return 1;
  }
  return Generate(ranks, argv[2], tokens);
}
