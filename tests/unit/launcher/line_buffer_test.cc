#include "launcher/line_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::launcher {
namespace {

using ::testing::ElementsAre;

class LineBufferTest : public ::testing::Test {
 protected:
  void Append(std::string_view bytes) { buffer_.Append(bytes, Sink()); }
  LineBuffer::OnLine Sink() {
    return [this](std::string_view line) { lines_.emplace_back(line); };
  }

  LineBuffer buffer_;
  std::vector<std::string> lines_;
};

TEST_F(LineBufferTest, CutsAtLineBreaksWhateverThePieces) {
  Append("one\ntw");
  Append("o\r\n\nthr");
  EXPECT_THAT(lines_, ElementsAre("one", "two", ""));
  Append("ee");
  buffer_.Finish(Sink());
  buffer_.Finish(Sink());
  EXPECT_THAT(lines_, ElementsAre("one", "two", "", "three"));
}

TEST_F(LineBufferTest, AnEndlessLineComesInPieces) {
  const std::string piece(LineBuffer::kMaxLine, 'x');
  Append(piece + piece + "y\n");
  EXPECT_THAT(lines_, ElementsAre(piece, piece, "y"));
}

TEST_F(LineBufferTest, KeepsTheLastLines) {
  for (int i = 0; i < 100; ++i) Append(std::to_string(i) + "\n");
  EXPECT_EQ(buffer_.last_lines().size(), LineBuffer::kKeptLines);
  EXPECT_EQ(buffer_.last_lines().back(), "99");
}

}  // namespace
}  // namespace penstock::launcher
