#include "daemon/http/response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(ResponseTest, LetsNoPageOfAnotherOriginUseIt) {
  const std::string bytes = Render({.type = kJson, .body = "{}\n"}, /*head=*/false, /*close=*/false);
  EXPECT_THAT(bytes, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"));
  for (const char* const field : {"Content-Security-Policy: default-src 'none'; frame-ancestors 'none'", "X-Content-Type-Options: nosniff",
                                  "Cross-Origin-Resource-Policy: same-origin", "Cache-Control: no-store", "Content-Length: 3\r\n"})
    EXPECT_THAT(bytes, HasSubstr(field));
  EXPECT_THAT(bytes, Not(HasSubstr("Access-Control")));
  EXPECT_THAT(bytes, Not(HasSubstr("Connection: close")));
  EXPECT_TRUE(bytes.ends_with("\r\n\r\n{}\n"));
}

TEST(ResponseTest, HeadAndTheEndOfAConnection) {
  const std::string head = Render({.body = "text"}, /*head=*/true, /*close=*/true);
  EXPECT_THAT(head, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(head, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_THAT(Render({.type = kEventStream, .stream = true}, false, false), Not(HasSubstr("Content-Length")));
  EXPECT_THAT(Render(HttpError(405, "no"), false, false), HasSubstr("Allow: GET, HEAD\r\n"));
  EXPECT_THAT(Render(HttpError(503, "no"), false, false), HasSubstr("Retry-After: 1\r\n"));
}

TEST(ResponseTest, AHostileTextStaysInItsEvent) {
  v1::Event event;
  event.set_sequence(9);
  event.set_instance(7);
  event.set_message("reason\n\ndata: {\"forged\": 1}\n\nid: 1-1\r\n\x1b[31m</script>");
  const std::string frame = EventFrame(event);
  EXPECT_THAT(frame, StartsWith("id: 7-9\ndata: {"));
  EXPECT_TRUE(frame.ends_with("}\n\n"));
  EXPECT_EQ(std::count(frame.begin(), frame.end(), '\n'), 3);
  EXPECT_EQ(frame.find('\r'), std::string::npos);
  EXPECT_EQ(frame.find('\x1b'), std::string::npos);
}

TEST(ResponseTest, AnEventsIdIsReadBack) {
  EXPECT_EQ(ParseEventId("7-9"), (EventPlace{7, 9}));
  EXPECT_EQ(ParseEventId("18446744073709551615-1"), (EventPlace{UINT64_MAX, 1}));
  for (const char* const text : {"", "7", "-", "7-", "-9", "7-9-1", "a-b", "7--9", "99999999999999999999-1"})
    EXPECT_FALSE(ParseEventId(text).has_value()) << text;
}

}  // namespace
}  // namespace r2cc::daemon
