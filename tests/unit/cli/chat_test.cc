#include "cli/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/chat_reply.h"

namespace penstock::cli {
namespace {

using ::testing::HasSubstr;

class ChatReplyTest : public ::testing::Test {
 protected:
  void Feed(std::string_view bytes, int milliseconds) {
    reply_.Feed(bytes, begin_ + std::chrono::milliseconds(milliseconds));
  }

  const ChatClock::time_point begin_ = {};
  std::string shown_;
  ChatReply reply_{begin_, [this](std::string_view text, bool reasoning) {
                     shown_ += (reasoning ? "<" : "[") + std::string(text) + "]";
                   }};
};

TEST_F(ChatReplyTest, ReadsEventsThatComeInPieces) {
  Feed(
      "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\ndata: {\"cho",
      0);
  Feed("ices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n", 1);
  Feed("data: {\"choices\":[{\"delta\":{\"content\":\"lo\"}}]}\n\ndata: [DONE]\n\n", 2);
  EXPECT_EQ(shown_, "[Hel][lo]");
  EXPECT_EQ(reply_.text(), "Hello");
  EXPECT_TRUE(reply_.done());
}

TEST_F(ChatReplyTest, ReasoningIsNoPartOfTheText) {
  Feed("data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n", 1);
  Feed("data: {\"choices\":[{\"delta\":{\"content\":\"yes\"}}]}\n\n", 2);
  EXPECT_EQ(shown_, "<hm][yes]");
  EXPECT_EQ(reply_.text(), "yes");
}

TEST_F(ChatReplyTest, CountsTokensByTheUsage) {
  EXPECT_EQ(reply_.Stats(), "no answer yet");
  Feed("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", 500);
  Feed("data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n", 1500);
  Feed(
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":11,"
      "\"prompt_tokens_details\":{\"cached_tokens\":32}}}\n\n",
      1600);
  EXPECT_EQ(reply_.Stats(),
            "11 tokens, 10.0 tokens/s, first after 0.50 s; prompt 40 tokens, 32 of them cached");
}

TEST_F(ChatReplyTest, AnAnswerThatCameAtOnceHasNoRate) {
  Feed("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", 500);
  Feed("data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n", 500);
  EXPECT_EQ(reply_.Stats(), "2 tokens, first after 0.50 s; the server named no usage");
}

TEST_F(ChatReplyTest, AnErrorInTheStreamIsKept) {
  Feed("data: {\"error\":{\"message\":\"a rank was lost\"}}\n\n", 1);
  EXPECT_EQ(reply_.error(), "a rank was lost");
}

TEST(ErrorMessageTest, FindsTheMessageOfADialect) {
  EXPECT_EQ(ErrorMessage(R"({"error": {"message": "no"}})"), "no");
  EXPECT_EQ(ErrorMessage(R"({"error": "no"})"), "no");
  EXPECT_EQ(ErrorMessage("plain"), "plain");
}

TEST(ConversationTest, SendsTheSystemMessageAndAllTurns) {
  Conversation conversation("be brief");
  conversation.Add("user", "a");
  conversation.Add("assistant", "b");
  conversation.Add("user", "c");
  EXPECT_THAT(conversation.Body("m"),
              HasSubstr(R"("messages":[{"role":"system","content":"be brief"},)"
                        R"({"role":"user","content":"a"},{"role":"assistant","content":"b"},)"
                        R"({"role":"user","content":"c"}])"));
  conversation.DropLast();
  EXPECT_EQ(conversation.Transcript(), "system: be brief\n\nuser: a\n\nassistant: b\n\n");
  conversation.Clear();
  conversation.SetSystem("");
  EXPECT_THAT(conversation.Body("m"), HasSubstr(R"("messages":[])"));
}

}  // namespace
}  // namespace penstock::cli
