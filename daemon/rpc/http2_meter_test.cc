#include "daemon/rpc/http2_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;

constexpr Http2Bounds kBounds = {.message_bytes_max = 1000, .pending_bytes_max = 1500, .share_pending_bytes_max = 2500, .streams_max = 8};
constexpr int kPerSecond = 10, kBurst = 20;
constexpr uint8_t kData = 0, kHeaders = 1, kRst = 3, kPing = 6, kWindow = 8;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  const size_t n = payload.size();
  std::string frame = {char(n >> 16),      char(n >> 8),       char(n),           char(type),  char(flags),
                       char(stream >> 24), char(stream >> 16), char(stream >> 8), char(stream)};
  return frame + payload;
}
std::string Message(size_t length, size_t sent) {
  return std::string({0, char(length >> 24), char(length >> 16), char(length >> 8), char(length)}) + std::string(sent, 'x');
}

class Http2MeterTest : public testing::Test {
 protected:
  Http2MeterTest() { EXPECT_EQ(Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, "")), ""); }
  // In pieces of all sizes.
  std::string Send(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const size_t part = std::min(bytes.size() - at, 1 + piece_++ % 13);
      if (const auto reason = meter_.FromClient(std::string_view(bytes).substr(at, part), now_)) return *reason;
      at += part;
    }
    return "";
  }
  void Ended(uint32_t stream) { meter_.FromServer(Frame(kHeaders, 1, stream, "trailers")); }

  Http2Allowance allowance_{{kPerSecond, kBurst}};
  Http2Meter meter_{kBounds, &allowance_};
  Nanos now_ = kNanosPerSecond;
  size_t piece_ = 0;
};

TEST_F(Http2MeterTest, HonestCallsGoOnForEver) {
  for (uint32_t i = 0; i < 1000; ++i) {
    const uint32_t stream = 2 * i + 1;
    ASSERT_EQ(Send(Frame(kHeaders, 4, stream, "headers") + Frame(kData, 1, stream, Message(900, 900)) + Frame(kWindow, 0, 0, "0000")), "");
    EXPECT_EQ(meter_.pending_bytes(), 900u) << "until the server has answered";
    Ended(stream);
    EXPECT_EQ(meter_.pending_bytes(), 0u);
    EXPECT_EQ(meter_.open_streams(), 0u);
    now_ += kNanosPerSecond / 10;
  }
}

TEST_F(Http2MeterTest, AStreamOfManyMessagesHoldsTheLastOne) {
  ASSERT_EQ(Send(Frame(kHeaders, 4, 1, "h")), "");
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Send(Frame(kData, 0, 1, Message(900, 400)) + Frame(kData, 0, 1, std::string(500, 'x'))), "");
  EXPECT_EQ(meter_.pending_bytes(), 900u);
  EXPECT_EQ(meter_.open_streams(), 1u);
}

TEST_F(Http2MeterTest, StreamsThatAreResetAtOnceEndTheConversation) {
  std::string reason;
  int opened = 0;
  for (uint32_t stream = 1; reason.empty() && opened < 1000; stream += 2, ++opened)
    reason = Send(Frame(kHeaders, 5, stream, "h") + Frame(kRst, 0, stream, "0000"));
  EXPECT_EQ(opened, kBurst + 1);
  EXPECT_THAT(reason, HasSubstr("opens more than 10 streams a second"));
}

TEST_F(Http2MeterTest, StreamsLeftOpenAreBounded) {
  for (uint32_t i = 0; i < 8; ++i) ASSERT_EQ(Send(Frame(kHeaders, 4, 2 * i + 1, "h")), "");
  EXPECT_THAT(Send(Frame(kHeaders, 4, 17, "h")), HasSubstr("more than 8 streams at a time"));
}

TEST_F(Http2MeterTest, RequestsWithoutAnEndAreBounded) {
  ASSERT_EQ(Send(Frame(kHeaders, 4, 1, "h") + Frame(kData, 0, 1, Message(1000, 999))), "");
  EXPECT_EQ(meter_.pending_bytes(), 999u);
  EXPECT_THAT(Send(Frame(kHeaders, 4, 3, "h") + Frame(kData, 0, 3, Message(1000, 999))),
              HasSubstr("more than 1500 bytes of requests under way"));
}

// Whole requests that the server has not answered yet, over several conversations of one share.
TEST_F(Http2MeterTest, AShareIsBounded) {
  const auto ask = [](uint32_t stream) { return Frame(kHeaders, 4, stream, "h") + Frame(kData, 1, stream, Message(700, 700)); };
  ASSERT_EQ(Send(ask(1) + ask(3)), "");
  {
    Http2Meter other(kBounds, &allowance_);
    const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    EXPECT_EQ(other.FromClient(preface + ask(1), now_), std::nullopt);
    EXPECT_EQ(allowance_.pending_bytes, 2100u);
    EXPECT_EQ(other.FromClient(ask(3), now_), "its connections have more than 2500 bytes of requests under way");
  }
  EXPECT_EQ(allowance_.pending_bytes, 1400u) << "what ended holds nothing";
  EXPECT_THAT(Send(ask(5)), HasSubstr("more than 1500 bytes of requests under way"));
}

TEST_F(Http2MeterTest, AnEndedStreamHoldsNothing) {
  ASSERT_EQ(Send(Frame(kHeaders, 4, 1, "h") + Frame(kData, 0, 1, Message(1000, 999))), "");
  Ended(1);
  EXPECT_EQ(meter_.pending_bytes(), 0u);
  ASSERT_EQ(Send(Frame(kData, 0, 1, std::string(5000, 'x'))), "") << "what was under way";
  EXPECT_EQ(meter_.pending_bytes(), 0u);
  ASSERT_EQ(Send(Frame(kHeaders, 4, 3, "h") + Frame(kData, 0, 3, Message(1000, 999)) + Frame(kRst, 0, 3, "0000")), "");
  EXPECT_EQ(meter_.pending_bytes(), 0u);
}

TEST_F(Http2MeterTest, AMessageIsRefusedByItsLength) {
  EXPECT_THAT(Send(Frame(kHeaders, 4, 1, "h") + Frame(kData, 0, 1, Message(1001, 0))), HasSubstr("a message of 1001 bytes"));
}

TEST_F(Http2MeterTest, FramesThatAreNoRequestsAreBounded) {
  std::string reason;
  int sent = 0;
  for (; reason.empty() && sent < 10'000; ++sent) reason = Send(Frame(kPing, 0, 0, "12345678"));
  EXPECT_LE(sent, Http2Meter::kOtherFramesBurst + 1);
  EXPECT_THAT(reason, HasSubstr("that are no requests"));
}

TEST_F(Http2MeterTest, OtherTongues) {
  Http2Meter meter(kBounds, &allowance_);
  EXPECT_FALSE(meter.begun());
  EXPECT_EQ(meter.FromClient("GET / HTTP/1.1\r\n", now_), "it does not use HTTP/2");
  EXPECT_THAT(Send(Frame(kHeaders, 4, 1, "h") + Frame(kData, 8, 1, "123")), HasSubstr("pads"));
}

}  // namespace
}  // namespace r2cc::daemon
