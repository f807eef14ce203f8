// Chat templates (Jinja2 as transformers runs it): messages to the text of a prompt.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

struct penstock_template;

namespace penstock::text {

// JSON texts as the client sent them; the order of keys is kept, since templates print it.
struct Conversation {
  std::string_view messages_json;  // an array
  std::string_view tools_json;     // empty: `tools` is None in the template
  std::string_view kwargs_json;    // an object of further variables; empty: none
  bool add_generation_prompt = true;
  std::optional<std::int64_t> now_seconds;  // for strftime_now, local time; absent: the clock
};

// Bounds of one rendering.
struct TemplateLimits {
  std::size_t input_bytes = std::size_t{32} << 20;
  std::size_t output_bytes = std::size_t{32} << 20;
  std::uint64_t steps = 1'000'000;
};

// Immutable; any number of threads may render at once. Errors: see text/tokenizer.h.
class ChatTemplate {
 public:
  // `globals_json`: an object of variables that each rendering sees (bos_token, eos_token, …).
  static absl::StatusOr<std::shared_ptr<const ChatTemplate>> Compile(std::string_view source,
                                                                     std::string_view globals_json);
  // The model's own template. One named "tool_use" is used for conversations with tools. NotFound
  // if the model has none.
  static absl::StatusOr<std::shared_ptr<const ChatTemplate>> Of(const Tokenizer& tokenizer);

  // Compiles `source` instead of the model's own template. It may use the model's named tokens.
  static absl::StatusOr<std::shared_ptr<const ChatTemplate>> With(
      const Tokenizer& tokenizer, std::string_view source,
      const std::optional<std::string>& tool_use);

  absl::StatusOr<std::string> Render(const Conversation& conversation,
                                     const TemplateLimits& limits = {}) const;

 private:
  struct Free {
    void operator()(penstock_template* compiled) const;
  };
  using Handle = std::unique_ptr<penstock_template, Free>;

  static absl::StatusOr<Handle> CompileOne(std::string_view source, std::string_view globals_json);
  ChatTemplate(Handle plain, Handle with_tools)
      : plain_(std::move(plain)), with_tools_(std::move(with_tools)) {}

  Handle plain_;
  Handle with_tools_;  // null: use the plain one
};

}  // namespace penstock::text
