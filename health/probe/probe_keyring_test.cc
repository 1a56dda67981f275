#include "health/probe/probe_keyring.h"

#include <gtest/gtest.h>

namespace r2cc::health {
namespace {

ProbeSecret Secret(int number) { return {0, static_cast<uint8_t>(number), static_cast<uint8_t>(number >> 8)}; }

class ProbeKeyringTest : public testing::Test {
 protected:
  ProbeKeyringTest() { Meet(); }
  // Each receives the other's present view.
  void Meet() {
    a_.SetPeer("b", b_.nonce(), b_.public_key(), {"10.0.0.2"});
    b_.SetPeer("a", a_.nonce(), a_.public_key(), {"10.0.0.1"});
  }
  // `b` understands what `a` sends, and `a` understands the answer.
  bool Understand() {
    const uint64_t from = a_.sending_nonce();
    const uint64_t to = b_.nonce();
    const ProbeMacKey* const sent = a_.MacKey(from, "b", to);
    const ProbeMacKey* const received = b_.MacKey(to, "a", from);
    return sent != nullptr && received != nullptr && *sent == *received;
  }

  // The nodes that have claimed this number.
  static std::string NodeOf(const ProbeKeyring& keys, uint64_t nonce, const std::string& address) {
    std::string all;
    keys.FindNode(nonce, address, [&](const std::string& node) {
      all += all.empty() ? node : " " + node;
      return false;
    });
    return all;
  }

  int secrets_ = 0;
  Nanos now_ = 1000 * kNanosPerSecond;
  ProbeKeyring a_{[this] { return Secret(++secrets_); }, now_};
  ProbeKeyring b_{[this] { return Secret(++secrets_); }, now_};
};

TEST_F(ProbeKeyringTest, BothEndsHaveOneKeyThatNobodyElseHas) {
  ASSERT_TRUE(Understand());
  EXPECT_EQ(NodeOf(a_, b_.nonce(), "10.0.0.2"), "b");
  EXPECT_EQ(NodeOf(a_, b_.nonce(), "10.0.0.3"), "") << "no address of b's";
  EXPECT_EQ(NodeOf(a_, b_.nonce() + 1, "10.0.0.2"), "");
  // A node that knows all published data, and has a key of its own, has another one with each of them.
  ProbeKeyring eve([] { return Secret(99); }, now_);
  eve.SetPeer("a", a_.nonce(), a_.public_key(), {"10.0.0.1"});
  eve.SetPeer("b", b_.nonce(), b_.public_key(), {"10.0.0.2"});
  const ProbeMacKey key = *a_.MacKey(a_.nonce(), "b", b_.nonce());
  EXPECT_NE(*eve.MacKey(eve.nonce(), "a", a_.nonce()), key);
  EXPECT_NE(*eve.MacKey(eve.nonce(), "b", b_.nonce()), key);
  EXPECT_EQ(eve.MacKey(b_.nonce(), "a", a_.nonce()), nullptr);
}

TEST_F(ProbeKeyringTest, AnothersKeyGivesNobodyItsPlace) {
  // Eve claims that b's key is hers, and that b's number is that of her key.
  a_.SetPeer("eve", b_.nonce(), b_.public_key(), {"10.0.0.9"});
  EXPECT_EQ(NodeOf(a_, b_.nonce(), "10.0.0.2"), "b");
  EXPECT_TRUE(Understand());
  const ProbeIdentity eve(Secret(99));
  a_.SetPeer("eve", b_.nonce(), eve.public_key(), {"10.0.0.2"});
  EXPECT_TRUE(Understand());
  a_.RemovePeer("b");
  a_.RemovePeer("eve");
  EXPECT_EQ(NodeOf(a_, b_.nonce(), "10.0.0.2"), "");
}

// Whose number is a key's is told by its first bytes, and those of b's new key are in its view before anybody has it: eve publishes a key
// that begins the same, and reaches a first. The number is b's all the same.
TEST_F(ProbeKeyringTest, AKeyWithTheNumberOfAnotherSenderTakesNothingFromIt) {
  ProbePublicKey vanity = b_.public_key();
  vanity.back() ^= 1;
  ASSERT_EQ(NonceOf(vanity), b_.nonce());
  ProbeKeyring fresh([this] { return Secret(++secrets_); }, now_);
  fresh.SetPeer("eve", b_.nonce(), vanity, {"10.0.0.2", "10.0.0.9"});
  fresh.SetPeer("b", b_.nonce(), b_.public_key(), {"10.0.0.2"});
  b_.SetPeer("fresh", fresh.nonce(), fresh.public_key(), {"10.0.0.4"});
  const ProbeMacKey* const here = fresh.MacKey(fresh.nonce(), "b", b_.nonce());
  const ProbeMacKey* const there = b_.MacKey(b_.nonce(), "fresh", fresh.nonce());
  ASSERT_TRUE(here != nullptr && there != nullptr);
  EXPECT_EQ(*here, *there);
  EXPECT_NE(*fresh.MacKey(fresh.nonce(), "eve", b_.nonce()), *here);
  EXPECT_EQ(NodeOf(fresh, b_.nonce(), "10.0.0.2"), "b eve") << "the MAC distinguishes them";
  fresh.RemovePeer("eve");
  EXPECT_EQ(NodeOf(fresh, b_.nonce(), "10.0.0.2"), "b");
}

TEST_F(ProbeKeyringTest, AKeyThatLeavesNothingSecretIsNone) {
  a_.SetPeer("zero", NonceOf({}), ProbePublicKey{}, {"10.0.0.9"});
  EXPECT_EQ(a_.MacKey(a_.nonce(), "zero", NonceOf({})), nullptr);
}

// A new key each hour, and at no moment one that the other end does not know: views take some time.
TEST_F(ProbeKeyringTest, KeysAreRenewedWithoutAGap) {
  std::set<uint64_t> nonces;
  for (const Nanos end = now_ + 3 * kProbeKeyLifetime + 2 * kProbeKeyAnnounced; now_ < end; now_ += kNanosPerSecond) {
    const bool changed = a_.Tick(now_);
    ASSERT_TRUE(Understand()) << "before anybody has received a new key";
    if (changed || now_ % (9 * kNanosPerSecond) == 0) {
      now_ += 5 * kNanosPerSecond;
      a_.Tick(now_);
      Meet();
    }
    ASSERT_TRUE(Understand());
    nonces.insert(a_.sending_nonce());
  }
  EXPECT_EQ(nonces.size(), 4U);
  const uint64_t before = a_.nonce();
  now_ += kProbeKeyLifetime;
  a_.Tick(now_);
  EXPECT_TRUE(a_.IsOwn(before));
  now_ += kProbeKeyGrace;
  a_.Tick(now_);
  EXPECT_FALSE(a_.IsOwn(before));
}

}  // namespace
}  // namespace r2cc::health
