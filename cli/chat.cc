#include "cli/chat.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>

#include "cli/chat_reply.h"
#include "cli/http_client.h"
#include "common/exit_codes.h"
#include "common/json_parse.h"
#include "common/json_text.h"
#include "common/status.h"

namespace penstock::cli {
namespace {

using options::OptionSpec;
using options::Type;

constexpr OptionSpec kChatRows[] = {
    OptionSpec("url", Type::kString, "http://127.0.0.1:3000",
               "Server: http://HOST[:PORT] or https://HOST[:PORT]; a /v1 at the end is ignored."),
    OptionSpec("model", Type::kString, "",
               "Name of the model. Unset: the first that GET /v1/models gives."),
    OptionSpec("api-key", Type::kString, "", "Bearer token."),
    OptionSpec("system", Type::kString, "", "System message."),
    OptionSpec("ca-file", Type::kPath, "",
               "PEM file with the authorities that may have signed an https server's certificate. "
               "Unset: those that the system trusts."),
    OptionSpec("insecure", Type::kBool, "false", "Do not check an https server's certificate."),
};

constexpr char kHelp[] =
    "/stats         tokens, tokens/s, time to the first token and cached tokens of the last "
    "answer\n"
    "/clear         forgets the conversation\n"
    "/system TEXT   sets the system message\n"
    "/save FILE     writes the conversation to a file\n"
    "/help          this list\n"
    "/quit          ends (also Ctrl-D); Ctrl-C stops an answer\n";

constexpr char kDim[] = "\033[2m";
constexpr char kPlain[] = "\033[0m";

// Prints the prompt and waits for a line of the terminal. False: Ctrl-C came first. SIGINT is
// blocked until the wait begins, so that none is lost between the prompt and the wait.
bool PromptForLine() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGINT, &action, nullptr);
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &interrupt, &before);
  std::fputs("> ", stdout);
  std::fflush(stdout);
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  const bool interrupted = ::ppoll(&input, 1, nullptr, &before) < 0 && errno == EINTR;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return !interrupted;
}

class Session {
 public:
  Session(HttpClient client, std::string model, std::string system)
      : client_(std::move(client)),
        model_(std::move(model)),
        conversation_(std::move(system)),
        prompts_(::isatty(STDIN_FILENO) != 0),
        colours_(::isatty(STDOUT_FILENO) != 0) {}

  int Run() {
    if (prompts_) std::printf("%s; /help lists the commands\n", model_.c_str());
    int code = kExitOk;
    while (const std::optional<std::string> line = ReadLine()) {
      if (line->empty()) continue;
      if (*line == "/quit") break;
      if (line->front() == '/') {
        Command(*line);
      } else if (!Ask(*line)) {
        code = kExitFailure;
      }
      std::fflush(stdout);
    }
    return prompts_ ? kExitOk : code;
  }

 private:
  std::optional<std::string> ReadLine() {
    while (prompts_ && !PromptForLine()) std::fputs("\n", stdout);
    char* text = nullptr;
    std::size_t size = 0;
    const ssize_t length = ::getline(&text, &size, stdin);
    const std::unique_ptr<char, void (*)(void*)> freed(text, std::free);
    if (length < 0) return std::nullopt;
    std::string line(text, static_cast<std::size_t>(length));
    while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
    return line;
  }

  void Command(const std::string& line) {
    const std::size_t blank = line.find(' ');
    const std::string name = line.substr(0, blank);
    const std::string text = blank == line.npos ? "" : line.substr(blank + 1);
    if (name == "/stats") {
      std::printf("%s\n", stats_.c_str());
    } else if (name == "/clear") {
      conversation_.Clear();
    } else if (name == "/system") {
      conversation_.SetSystem(text);
    } else if (name == "/save") {
      std::ofstream file(text);
      file << conversation_.Transcript();
      file.close();
      if (!file.good()) std::fprintf(stderr, "/save %s: cannot be written\n", text.c_str());
    } else {
      if (name != "/help") std::printf("%s: no such command\n", name.c_str());
      std::fputs(kHelp, stdout);
    }
  }

  void Show(std::string_view text, bool reasoning) {
    if (reasoning && !prompts_ && !colours_) return;  // a pipe gets the answer alone
    if (colours_ && reasoning != dimmed_) std::fputs(reasoning ? kDim : kPlain, stdout);
    if (dimmed_ && !reasoning) std::fputs("\n", stdout);
    dimmed_ = reasoning;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  bool Ask(const std::string& text) {
    conversation_.Add("user", text);
    ChatReply reply(ChatClock::now(),
                    [this](std::string_view piece, bool reasoning) { Show(piece, reasoning); });
    HttpCall call;
    call.method = boost::beast::http::verb::post;
    call.target = "/v1/chat/completions";
    call.body = conversation_.Body(model_);
    call.timeout = std::chrono::minutes(10);
    call.stops_on_interrupt = true;
    call.on_bytes = [&reply](std::string_view bytes) { reply.Feed(bytes, ChatClock::now()); };
    const auto answer = client_.Call(call);
    if (colours_ && dimmed_) std::fputs(kPlain, stdout);
    dimmed_ = false;
    std::fputs("\n", stdout);
    std::string error = reply.error();
    if (!answer.ok()) {
      error = Message(answer.status());
    } else if (!answer->interrupted && answer->status != 200) {
      error = "status " + std::to_string(answer->status) + ": " + ErrorMessage(answer->body);
      if (answer->status == 401) error += "; penstock chat --api-key KEY sends it";
      if (error.ends_with("template not found")) {
        error +=
            "; the model has no chat template: ask /v1/completions, or start the server with "
            "--tokenizer-config-path FILE";
      }
    }
    stats_ = reply.Stats();
    if (error.empty() || !reply.text().empty()) {
      conversation_.Add("assistant", reply.text());
    } else {
      conversation_.DropLast();
    }
    if (!error.empty()) std::fprintf(stderr, "penstock chat: error: %s\n", error.c_str());
    return error.empty();
  }

  const HttpClient client_;
  const std::string model_;
  Conversation conversation_;
  const bool prompts_;
  const bool colours_;
  bool dimmed_ = false;
  std::string stats_ = "no answer yet";
};

// The first model that GET /v1/models lists.
absl::StatusOr<std::string> FirstModel(const HttpClient& client) {
  HttpCall call;
  call.target = "/v1/models";
  PENSTOCK_ASSIGN_OR_RETURN(const HttpAnswer answer, client.Call(call));
  if (answer.status != 200) {
    return absl::UnavailableError("GET /v1/models: status " + std::to_string(answer.status) + ": " +
                                  ErrorMessage(answer.body));
  }
  const auto parsed = ParseJson(answer.body, 32);
  if (parsed.ok() && parsed->is_object()) {
    const auto* data = parsed->as_object().if_contains("data");
    if (data != nullptr && data->is_array() && !data->as_array().empty() &&
        data->as_array()[0].is_object()) {
      const auto* id = data->as_array()[0].as_object().if_contains("id");
      if (id != nullptr && id->is_string()) return std::string(id->as_string());
    }
  }
  return absl::UnavailableError("GET /v1/models names no model; give --model");
}

int FailChat(const std::string& error, int code) {
  std::fprintf(stderr, "penstock chat: error: %s\n", error.c_str());
  return code;
}

}  // namespace

void Conversation::Add(std::string_view role, std::string_view text) {
  turns_.push_back(boost::json::object{{"role", role}, {"content", text}});
}

std::string Conversation::Body(const std::string& model) const {
  boost::json::array messages;
  if (!system_.empty()) {
    messages.push_back(boost::json::object{{"role", "system"}, {"content", system_}});
  }
  messages.insert(messages.end(), turns_.begin(), turns_.end());
  return JsonText(
      boost::json::object{{"model", model},
                          {"messages", messages},
                          {"stream", true},
                          {"stream_options", boost::json::object{{"include_usage", true}}}});
}

std::string Conversation::Transcript() const {
  std::string text = system_.empty() ? "" : "system: " + system_ + "\n\n";
  for (const boost::json::value& turn : turns_) {
    text += std::string(turn.at("role").as_string()) + ": " +
            std::string(turn.at("content").as_string()) + "\n\n";
  }
  return text;
}

options::ProgramOptions ChatOptions() {
  return options::ProgramWith("penstock chat", "A chat with a server, in this terminal.",
                              kChatRows);
}

int Chat(const Words& words) {
  const auto line = ReadWords(ChatOptions(), words);
  if (line.exit_code) return *line.exit_code;
  const options::Values& values = line.values;
  const std::string text = values.GetString("url");
  std::optional<bench::ServerUrl> url = bench::ParseServerUrl(text);
  if (!url)
    return FailChat("--url " + text + ": must be http://HOST[:PORT] or https://...", kExitUsage);
  while (url->target.ends_with('/')) url->target.pop_back();
  if (url->target.ends_with("/v1")) url->target.resize(url->target.size() - 3);
  HttpClient client(*url, values.GetString("api-key"),
                    {values.GetString("ca-file"), values.GetBool("insecure")});
  std::string model = values.GetString("model");
  if (model.empty()) {
    const auto first = FirstModel(client);
    if (!first.ok()) {
      return FailChat(text + ": " + Message(first.status()) + "; `penstock doctor --url " + text +
                          "` looks for the cause",
                      kExitFailure);
    }
    model = *first;
  }
  return Session(std::move(client), model, values.GetString("system")).Run();
}

}  // namespace penstock::cli
