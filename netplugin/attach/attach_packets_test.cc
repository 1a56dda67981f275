#include "netplugin/attach/attach_packets.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "plan/page/text.h"

namespace r2cc::net {
namespace {

plan::AttachReply GoodReply() {
  plan::AttachReply reply{};
  reply.magic = plan::kAttachMagic;
  reply.version = plan::kAttachVersion;
  reply.rail_count = 2;
  plan::SetText("node0", reply.node);
  plan::SetText("nic0", reply.nics[0]);
  plan::SetText("nic1", reply.nics[1]);
  return reply;
}

std::string Judged(const plan::AttachReply& packet, size_t descriptors = 2, size_t bytes = sizeof(plan::AttachReply)) {
  plan::AttachReply reply{};
  const std::string refusal = CheckReply(&packet, bytes, descriptors, &reply);
  EXPECT_EQ(refusal.empty(), reply.magic != 0);
  EXPECT_EQ(refusal.find('\n'), std::string::npos);
  return refusal;
}

TEST(MakeAttachRequest, NamesTheRails) {
  std::vector<Rail> rails(2);
  rails[0].name = "eth0";
  rails[0].address = *ParseIpAddress("10.0.0.1");
  rails[0].pci = "0000:81:00.0";
  rails[0].guid = 77;
  rails[0].mac = {1, 2, 3, 4, 5, 6};
  rails[0].netns_inode = 99;
  rails[1].name = std::string(40, 'x');  // an IPv6 address is longer than the field: the address field has it
  const plan::AttachRequest request = MakeAttachRequest("llama\n", 42, 4711, rails, "0.9");
  EXPECT_TRUE(Valid(request));
  EXPECT_EQ(request.version, plan::kAttachVersion);
  EXPECT_EQ(request.pid, 42);
  EXPECT_EQ(request.process_id, 4711u);
  EXPECT_STREQ(request.job, "llama?");
  EXPECT_STREQ(request.release, "0.9");
  ASSERT_EQ(request.rail_count, 2u);
  EXPECT_STREQ(request.rails[0].name, "eth0");
  EXPECT_STREQ(request.rails[0].address, "10.0.0.1");
  EXPECT_STREQ(request.rails[0].pci, "0000:81:00.0");
  EXPECT_EQ(request.rails[0].guid, 77u);
  EXPECT_EQ(request.rails[0].mac[5], 6);
  EXPECT_EQ(request.rails[0].netns_inode, 99u);
  EXPECT_EQ(std::string(request.rails[1].name), std::string(23, 'x'));
}

TEST(MakeAttachRequest, NamesAtMostWhatFits) {
  EXPECT_EQ(MakeAttachRequest("job", 1, 1, std::vector<Rail>(100), "0.9").rail_count, plan::kAttachRailsMax);
}

TEST(CheckReply, AcceptanceIsTaken) { EXPECT_EQ(Judged(GoodReply()), ""); }

TEST(CheckReply, NamesBeyondTheCountAreCleared) {
  plan::AttachReply packet = GoodReply();
  std::memset(packet.nics[2], 'x', sizeof(packet.nics[2]));
  plan::AttachReply reply{};
  EXPECT_EQ(CheckReply(&packet, sizeof(packet), 2, &reply), "");
  EXPECT_STREQ(reply.nics[1], "nic1");
  EXPECT_STREQ(reply.nics[2], "");
}

TEST(CheckReply, EveryRefusalHasAReason) {
  plan::AttachReply reply = GoodReply();
  reply.status = static_cast<uint32_t>(plan::AttachStatus::kRefused);
  plan::SetText("too many jobs", reply.reason);
  EXPECT_EQ(Judged(reply, 0), "it refused: too many jobs");
  plan::SetText("", reply.reason);
  EXPECT_EQ(Judged(reply, 0), "it refused: no reason given");
  reply = GoodReply();
  reply.version = 7;
  EXPECT_EQ(Judged(reply, 2, 300), "it uses attach version 7, this plugin 2: upgrade r2ccd or the plugin");
  reply = GoodReply();
  reply.magic ^= 1;
  EXPECT_NE(Judged(reply).find("garbled"), std::string::npos);
  reply = GoodReply();
  reply.status = 9;
  EXPECT_NE(Judged(reply).find("garbled"), std::string::npos);
  reply = GoodReply();
  reply.rail_count = 33;
  EXPECT_NE(Judged(reply).find("garbled"), std::string::npos);
  reply = GoodReply();
  reply.node[0] = '\0';
  EXPECT_EQ(Judged(reply), "it did not send the name of this node");
  for (size_t descriptors : {0, 1, 3}) EXPECT_NE(Judged(GoodReply(), descriptors).find("descriptors instead of"), std::string::npos);
  for (size_t bytes : {0, 1, 7}) EXPECT_NE(Judged(GoodReply(), 2, bytes).find("garbled"), std::string::npos);
  EXPECT_NE(Judged(GoodReply(), 2, sizeof(reply) - 1).find("bytes instead of"), std::string::npos);
}

TEST(CheckReply, AnOlderDaemonsAnswerIsTaken) {
  for (uint32_t version = plan::kAttachVersionLeast; version <= plan::kAttachVersion; ++version) {
    plan::AttachReply reply = GoodReply();
    reply.version = version;
    EXPECT_EQ(Judged(reply), "") << version;
  }
}

TEST(VersionToAskIn, OnlyAnOlderOneThatIsKnownAndOnlyWhereTheVersionWasRefused) {
  // As the next release asks.
  constexpr uint32_t kAsked = plan::kAttachVersion + 1;
  plan::AttachReply reply = GoodReply();
  const auto asks = [&](uint32_t version, plan::AttachStatus status) {
    reply.version = version;
    reply.status = static_cast<uint32_t>(status);
    return VersionToAskIn(&reply, sizeof(reply), kAsked);
  };
  EXPECT_EQ(asks(plan::kAttachVersionLeast, plan::AttachStatus::kWrongVersion), plan::kAttachVersionLeast);
  EXPECT_EQ(asks(plan::kAttachVersion, plan::AttachStatus::kWrongVersion), plan::kAttachVersion);
  EXPECT_EQ(asks(plan::kAttachVersionLeast - 1, plan::AttachStatus::kWrongVersion), 0u);
  EXPECT_EQ(asks(kAsked, plan::AttachStatus::kWrongVersion), 0u) << "it was asked in that";
  EXPECT_EQ(asks(9, plan::AttachStatus::kWrongVersion), 0u);
  EXPECT_EQ(asks(plan::kAttachVersion, plan::AttachStatus::kRefused), 0u);
  EXPECT_EQ(asks(plan::kAttachVersion, plan::AttachStatus::kAccepted), 0u);
  reply.version = plan::kAttachVersion;
  reply.status = static_cast<uint32_t>(plan::AttachStatus::kWrongVersion);
  EXPECT_EQ(VersionToAskIn(&reply, sizeof(reply), plan::kAttachVersion), 0u) << "it was asked in that";
  EXPECT_EQ(VersionToAskIn(&reply, sizeof(reply) - 1, kAsked), 0u);
}

TEST(CheckReplyFuzz, OnlySoundRepliesGetThrough) {
  std::mt19937_64 random(7);
  int accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    plan::AttachReply packet = GoodReply();
    auto* bytes = reinterpret_cast<unsigned char*>(&packet);
    for (uint64_t flips = random() % 4; flips > 0; --flips) {
      const size_t at = random() % 4 == 0 ? random() % 64 : random() % sizeof(packet);
      bytes[at] = static_cast<unsigned char>(random());
    }
    const size_t size = random() % 8 == 0 ? random() % sizeof(packet) : sizeof(packet);
    const std::vector<unsigned char> exact(bytes, bytes + size);
    plan::AttachReply reply{};
    const std::string refusal = CheckReply(exact.data(), exact.size(), 2, &reply);
    ASSERT_EQ(refusal.find('\n'), std::string::npos);
    if (!refusal.empty()) continue;
    ++accepted;
    ASSERT_TRUE(Valid(reply));
    for (const auto& nic : reply.nics) ASSERT_LT(strnlen(nic, sizeof(nic)), sizeof(nic));
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 99'000);
}

}  // namespace
}  // namespace r2cc::net
