// <tool_call>
// <function=get_weather>
// <parameter=city>
// Paris
// </parameter>
// </function>
// </tool_call>
#include "router/answer/bodies/tagged_body.h"
#include "router/answer/formats/formats.h"

namespace penstock::router::answer::qwen3_coder {
namespace {

constexpr ArgumentTags kTags = {.before_name = "<parameter=",
                                .after_name = ">",
                                .before_value = "",
                                .after_value = "</parameter>",
                                .end = "</function>",
                                .lines = true};

bool ReadFunction(Cursor& cursor, const ToolSet& tools, Header& header) {
  cursor.SkipBlanks();
  if (!cursor.Take("<function=")) return false;
  if (!cursor.TakeTool(tools, header.tool) || !cursor.Take(">")) return false;
  header.body = MakeTaggedBody(kTags, *header.tool);
  return true;
}

// Models often leave out the outer tag.
constexpr std::string_view kQwenOpeners[] = {"<tool_call>", "<function="};
constexpr std::string_view kQwenClosers[] = {"</tool_call>"};
constexpr std::string_view kQwenShown[] = {"<function=", "<parameter="};
constexpr Texts kQwenEvidence[] = {kQwenShown};
constexpr ReasoningMarkers kQwenReasoning[] = {{"<think>", "</think>"}};

bool ReadQwenCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  return cursor.Optional("<tool_call>") && ReadFunction(cursor, tools, header);
}

constexpr std::string_view kSeedOpeners[] = {"<seed:tool_call>"};
constexpr std::string_view kSeedClosers[] = {"</seed:tool_call>"};
constexpr std::string_view kSeedShown[] = {"<seed:tool_call>"};
constexpr Texts kSeedEvidence[] = {kSeedShown};
constexpr ReasoningMarkers kSeedReasoning[] = {{"<seed:think>", "</seed:think>"}};

bool ReadSeedCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  return cursor.Take("<seed:tool_call>") && ReadFunction(cursor, tools, header);
}

}  // namespace

const Format kQwen3Coder = {.name = "qwen3_coder",
                            .models = "Qwen 3 Coder, Qwen 3.5, Nemotron 3",
                            .evidence = kQwenEvidence,
                            .reasoning = kQwenReasoning,
                            .openers = kQwenOpeners,
                            .header = ReadQwenCall,
                            .closers = kQwenClosers,
                            .call = {.call_begin = "<tool_call>\n<function=",
                                     .after_name = ">\n",
                                     .arguments = ArgumentForm::kTags,
                                     .tags = &kTags,
                                     .lines = true,
                                     .call_end = "\n</tool_call>",
                                     .separator = "\n"}};

const Format kSeedOss = {.name = "seed_oss",
                         .models = "Seed-OSS",
                         .evidence = kSeedEvidence,
                         .reasoning = kSeedReasoning,
                         .openers = kSeedOpeners,
                         .header = ReadSeedCall,
                         .next_header = ReadFunction,
                         .closers = kSeedClosers,
                         .call = {.call_begin = "<seed:tool_call>\n<function=",
                                  .after_name = ">\n",
                                  .arguments = ArgumentForm::kTags,
                                  .tags = &kTags,
                                  .call_end = "\n</seed:tool_call>",
                                  .separator = "\n"}};

}  // namespace penstock::router::answer::qwen3_coder
