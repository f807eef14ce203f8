// The formats that published chat templates show.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "router/answer/format.h"
#include "tests/unit/support/paths.h"

namespace penstock::router::answer {
namespace {

constexpr std::pair<std::string_view, std::string_view> kTemplates[] = {
    {"chujiezheng/chatml.jinja", "none"},
    {"chujiezheng/llama-3-instruct.jinja", "none"},
    {"chujiezheng/granite-3.0-instruct.jinja", "granite"},
    {"llama.cpp/NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja", "hermes"},
    {"llama.cpp/Qwen-Qwen2.5-7B-Instruct.jinja", "hermes"},
    {"llama.cpp/deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja", "deepseek_v3"},
    {"llama.cpp/fireworks-ai-llama-3-firefunction-v2.jinja", "phi4"},
    {"llama.cpp/google-gemma-2-2b-it.jinja", "gemma3"},
    {"llama.cpp/meetkai-functionary-medium-v3.1.jinja", "llama3_json"},
    {"llama.cpp/meta-llama-Llama-3.1-8B-Instruct.jinja", "llama3_json"},
    {"llama.cpp/meta-llama-Llama-3.2-3B-Instruct.jinja", "llama3_json"},
    {"llama.cpp/mistralai-Mistral-Nemo-Instruct-2407.jinja", "mistral_v3"},
    {"minja/Qwen-Qwen3-Coder-30B-A3B-Instruct.jinja", "qwen3_coder"},
    {"mistral-common/v1.jinja", "none"},
    {"mistral-common/v7.jinja", "mistral_v3"},
    {"mistral-common/v11_think.jinja", "mistral_v11"},
    {"mistral-common/v13.jinja", "mistral_v11"},
    {"qwen3/qwen3_nonthinking.jinja", "hermes"},
};

TEST(DetectFormat, PublishedTemplatesShowTheirFormat) {
  PENSTOCK_SHARED_OR_SKIP(folder, "chat_templates");
  for (const auto& [name, format] : kTemplates) {
    std::ifstream file(std::filesystem::path(folder) / name);
    std::stringstream text;
    text << file.rdbuf();
    ASSERT_FALSE(text.str().empty()) << name;
    EXPECT_EQ(DetectFormat(text.str()).name, format) << name;
  }
}

TEST(DetectFormat, ATemplateThatOnlyReasonsHasNoCalls) {
  EXPECT_EQ(DetectFormat("{{ content.split('</think>')[-1] }}").name, "think");
}

}  // namespace
}  // namespace penstock::router::answer
