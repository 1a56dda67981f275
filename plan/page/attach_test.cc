#include "plan/page/attach.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "plan/page/text.h"

namespace r2cc::plan {
namespace {

AttachRequest GoodRequest() {
  AttachRequest request{};
  request.magic = kAttachMagic;
  request.version = kAttachVersion;
  request.pid = 42;
  request.rail_count = kAttachRailsMax;
  SetText("llama", request.job);
  for (uint32_t i = 0; i < kAttachRailsMax; ++i) {
    SetText("rail" + std::to_string(i), request.rails[i].name);
    SetText("10.0.0." + std::to_string(i), request.rails[i].address);
    SetText("0000:81:00.0", request.rails[i].pci);
  }
  return request;
}

AttachReply GoodReply() {
  AttachReply reply{};
  reply.magic = kAttachMagic;
  reply.version = kAttachVersion;
  reply.rail_count = 2;
  SetText("node0", reply.node);
  SetText("nic0", reply.nics[0]);
  return reply;
}

TEST(Text, IsCutTerminatedAndPrintable) {
  char field[4];
  SetText("ab", field);
  EXPECT_EQ(std::string(field, 4), std::string("ab\0\0", 4));
  SetText("abcdef", field);
  EXPECT_STREQ(field, "abc");
  SetText("a\nb", field);
  EXPECT_STREQ(field, "a?b");
  SetText("\xc3\xa4", field);
  EXPECT_STREQ(field, "??");
  EXPECT_TRUE(SoundText(field));
  std::memcpy(field, "abcd", 4);
  EXPECT_FALSE(SoundText(field));
  std::memcpy(field, "a\x7f\0", 4);
  EXPECT_FALSE(SoundText(field));
}

TEST(AttachRequest, SoundOnesAreValid) {
  AttachRequest request = GoodRequest();
  EXPECT_TRUE(Valid(request));
  request.rail_count = 0;
  EXPECT_TRUE(Valid(request));
  request.version = 77;  // the caller's to judge
  EXPECT_TRUE(Valid(request));
}

TEST(AttachRequest, EachUnsoundFieldIsRefused) {
  AttachRequest request = GoodRequest();
  request.magic ^= 1;
  EXPECT_FALSE(Valid(request));
  request = GoodRequest();
  request.rail_count = kAttachRailsMax + 1;
  EXPECT_FALSE(Valid(request));
  request.rail_count = 0xffffffff;
  EXPECT_FALSE(Valid(request));
  request = GoodRequest();
  std::memset(request.job, 'x', sizeof(request.job));
  EXPECT_FALSE(Valid(request));
  for (uint32_t i : {0u, 7u, kAttachRailsMax - 1}) {
    request = GoodRequest();
    std::memset(request.rails[i].name, 'x', sizeof(request.rails[i].name));
    EXPECT_FALSE(Valid(request));
    request = GoodRequest();
    std::memset(request.rails[i].address, 'x', sizeof(request.rails[i].address));
    EXPECT_FALSE(Valid(request));
    request = GoodRequest();
    std::memset(request.rails[i].pci, 'x', sizeof(request.rails[i].pci));
    EXPECT_FALSE(Valid(request));
  }
  request = GoodRequest();
  request.rail_count = 2;
  std::memset(request.rails[2].name, 'x', sizeof(request.rails[2].name));  // beyond the count: nobody reads it
  EXPECT_TRUE(Valid(request));
}

TEST(AttachReply, EachUnsoundFieldIsRefused) {
  AttachReply reply = GoodReply();
  EXPECT_TRUE(Valid(reply));
  reply.magic = 0;
  EXPECT_FALSE(Valid(reply));
  reply = GoodReply();
  reply.status = 3;
  EXPECT_FALSE(Valid(reply));
  reply = GoodReply();
  reply.rail_count = kAttachRailsMax + 1;
  EXPECT_FALSE(Valid(reply));
  reply = GoodReply();
  std::memset(reply.node, 'x', sizeof(reply.node));
  EXPECT_FALSE(Valid(reply));
  reply = GoodReply();
  std::memset(reply.reason, 'x', sizeof(reply.reason));
  EXPECT_FALSE(Valid(reply));
  reply = GoodReply();
  std::memset(reply.nics[1], 'x', sizeof(reply.nics[1]));
  EXPECT_FALSE(Valid(reply));
}

// A message that is valid after a mutation can be read as C strings within bounds.
TEST(AttachFuzz, ValidMeansEveryStringEnds) {
  std::mt19937_64 random(1);
  int valid = 0;
  AttachRequest request = GoodRequest();
  for (int i = 0; i < 100'000; ++i) {
    auto* bytes = reinterpret_cast<unsigned char*>(&request);
    for (uint64_t flips = random() % 4; flips > 0; --flips) bytes[random() % sizeof(request)] = static_cast<unsigned char>(random());
    if (Valid(request)) {
      ++valid;
      ASSERT_LE(request.rail_count, kAttachRailsMax);
      ASSERT_LT(strnlen(request.job, sizeof(request.job)), sizeof(request.job));
      for (uint32_t rail = 0; rail < request.rail_count; ++rail) {
        ASSERT_LT(strnlen(request.rails[rail].name, sizeof(request.rails[rail].name)), sizeof(request.rails[rail].name));
        ASSERT_LT(strnlen(request.rails[rail].address, sizeof(request.rails[rail].address)), sizeof(request.rails[rail].address));
        ASSERT_LT(strnlen(request.rails[rail].pci, sizeof(request.rails[rail].pci)), sizeof(request.rails[rail].pci));
      }
    } else {
      request = GoodRequest();
    }
  }
  EXPECT_GT(valid, 1000);
  EXPECT_LT(valid, 99'000);
}

TEST(AttachFuzz, ReplyStringsEnd) {
  std::mt19937_64 random(2);
  int valid = 0;
  AttachReply reply = GoodReply();
  for (int i = 0; i < 100'000; ++i) {
    auto* bytes = reinterpret_cast<unsigned char*>(&reply);
    for (uint64_t flips = random() % 4; flips > 0; --flips) bytes[random() % sizeof(reply)] = static_cast<unsigned char>(random());
    if (Valid(reply)) {
      ++valid;
      ASSERT_LT(strnlen(reply.node, sizeof(reply.node)), sizeof(reply.node));
      ASSERT_LT(strnlen(reply.reason, sizeof(reply.reason)), sizeof(reply.reason));
      for (uint32_t rail = 0; rail < reply.rail_count; ++rail)
        ASSERT_LT(strnlen(reply.nics[rail], sizeof(reply.nics[rail])), sizeof(reply.nics[rail]));
    } else {
      reply = GoodReply();
    }
  }
  EXPECT_GT(valid, 1000);
  EXPECT_LT(valid, 99'999);
}

}  // namespace
}  // namespace r2cc::plan
