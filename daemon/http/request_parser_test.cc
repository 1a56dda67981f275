#include "daemon/http/request_parser.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace r2cc::daemon {
namespace {

using State = RequestParser::State;

State Parse(std::string bytes, int* status = nullptr) {
  RequestParser parser;
  const State state = parser.Parse(&bytes);
  if (state == State::kBad && status != nullptr) *status = parser.error_status();
  return state;
}

TEST(RequestParserTest, ReadsOneRequestAfterTheOtherHoweverTheBytesCome) {
  const std::string text =
      "GET /metrics?x=1 HTTP/1.1\r\nHost: n0:9460\r\nOrigin: http://n0:9460\r\nLast-Event-ID: 7-9\r\n\r\n"
      "HEAD / HTTP/1.0\r\nhost: [::1]\r\n\r\n";
  for (const size_t step : {text.size(), size_t{1}, size_t{7}}) {
    RequestParser parser;
    std::string bytes;
    std::vector<HttpRequest> requests;
    for (size_t at = 0; at < text.size(); at += step) {
      bytes += text.substr(at, step);
      while (parser.Parse(&bytes) == State::kDone) requests.push_back(parser.request());
    }
    ASSERT_EQ(requests.size(), 2u) << step;
    EXPECT_EQ(requests[0].method, "GET");
    EXPECT_EQ(requests[0].target, "/metrics?x=1");
    EXPECT_EQ(requests[0].host, "n0:9460");
    EXPECT_EQ(requests[0].origin, "http://n0:9460");
    EXPECT_EQ(requests[0].last_event_id, "7-9");
    EXPECT_TRUE(requests[0].keep_alive);
    EXPECT_TRUE(requests[1].head());
    EXPECT_EQ(requests[1].host, "[::1]");
    EXPECT_FALSE(requests[1].keep_alive);
    EXPECT_TRUE(bytes.empty());
  }
}

TEST(RequestParserTest, AHeaderIsBounded) {
  int status = 0;
  EXPECT_EQ(Parse("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(7000, 'x') + "\r\n\r\n"), State::kDone);
  EXPECT_EQ(Parse("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(RequestParser::kHeaderBytesMax, 'x') + "\r\n\r\n", &status),
            State::kBad);
  EXPECT_EQ(status, 431);
  // Also one without an end.
  RequestParser parser;
  std::string bytes = "GET /";
  State state = State::kMore;
  for (int i = 0; i < 100 && state == State::kMore; ++i) {
    bytes += std::string(1000, 'a');
    state = parser.Parse(&bytes);
  }
  EXPECT_EQ(state, State::kBad);
  EXPECT_LT(bytes.size(), RequestParser::kHeaderBytesMax + 2000);
}

TEST(RequestParserTest, NoRequestHasABody) {
  int status = 0;
  EXPECT_EQ(Parse("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", &status), State::kBad);
  EXPECT_EQ(status, 413);
  EXPECT_EQ(Parse("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), State::kBad);
  EXPECT_EQ(Parse("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"), State::kDone);
}

TEST(RequestParserTest, OneHostAlone) {
  EXPECT_EQ(Parse("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), State::kBad);
  EXPECT_EQ(Parse("GET / HTTP/1.1\r\nHost: a\r\nOrigin: a\r\nOrigin: b\r\n\r\n"), State::kBad);
}

TEST(RequestParserTest, GarbageIsRefusedOrWaitedFor) {
  for (const char* const text : {"\x16\x03\x01\x02", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /\r\n\r\n",
                                 "GET / HTTP/1.1\r\nHost\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n", " GET / HTTP/1.1\r\n\r\n"})
    EXPECT_NE(Parse(text), State::kDone) << text;
  std::mt19937 random(7);
  const std::string sound = "GET /api/v1/events?last=3 HTTP/1.1\r\nHost: n0\r\nAccept: */*\r\n\r\n";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = sound;
    for (int change = 0; change < 3; ++change) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 2 == 0) bytes.resize(random() % bytes.size());
    RequestParser parser;
    parser.Parse(&bytes);  // for any content
  }
}

}  // namespace
}  // namespace r2cc::daemon
