#include "health/io/rdma_end.h"

#include <gtest/gtest.h>

#include <string>

namespace r2cc::health {
namespace {

RdmaEnd SomeEnd() {
  RdmaEnd end{.number = 0x12'3456, .psn = 0xab'cdef, .meets = 0x11, .lid = 7, .mtu_bytes = 4096};
  end.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
  return end;
}

TEST(RdmaEnd, ComesBackAsItWas) { EXPECT_EQ(DecodeRdmaEnd(EncodeRdmaEnd(SomeEnd())), SomeEnd()); }

TEST(RdmaEnd, OtherLengthsAreRefused) {
  const std::string bytes = EncodeRdmaEnd(SomeEnd());
  for (size_t length = 0; length < bytes.size(); ++length) EXPECT_EQ(DecodeRdmaEnd(bytes.substr(0, length)), std::nullopt) << length;
  EXPECT_EQ(DecodeRdmaEnd(bytes + '\0'), std::nullopt);
}

TEST(RdmaEnd, ValuesThatNoPortHasAreRefused) {
  const auto refused = [](void (*spoil)(RdmaEnd*)) {
    RdmaEnd end = SomeEnd();
    spoil(&end);
    return !DecodeRdmaEnd(EncodeRdmaEnd(end)).has_value();
  };
  EXPECT_FALSE(refused([](RdmaEnd*) {}));
  EXPECT_TRUE(refused([](RdmaEnd* end) { end->number = 0; }));
  EXPECT_TRUE(refused([](RdmaEnd* end) { end->number = 1; }));
  EXPECT_TRUE(refused([](RdmaEnd* end) { end->number = 0x100'0000; }));
  EXPECT_TRUE(refused([](RdmaEnd* end) { end->psn = 0x100'0000; }));
  EXPECT_TRUE(refused([](RdmaEnd* end) { end->meets = 0x100'0000; }));
  EXPECT_TRUE(refused([](RdmaEnd* end) { end->mtu_bytes = 128; }));
  EXPECT_TRUE(refused([](RdmaEnd* end) { end->mtu_bytes = 8192; }));
  EXPECT_TRUE(refused([](RdmaEnd* end) { end->gid = {}; }));
  EXPECT_TRUE(refused([](RdmaEnd* end) { end->gid[0] = 0xff; }));
  std::string later = EncodeRdmaEnd(SomeEnd());
  later[0] = 2;
  EXPECT_EQ(DecodeRdmaEnd(later), std::nullopt);
}

}  // namespace
}  // namespace r2cc::health
