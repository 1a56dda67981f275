// The peers that a prober believes, and how often it probes each: one prober, and a peer that the test plays.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/core/hash.h"
#include "health/probe/rail_prober.h"

namespace r2cc::health {
namespace {

constexpr Nanos kMs = kNanosPerMs;

// n0's prober, and the keys of a peer that a test plays.
struct OneProber {
  ProbeIdentity own{ProbeSecret{0, 1}};
  ProbeIdentity peer{ProbeSecret{0, 2}};
  ProbeKeyring keys{[] { return ProbeSecret{0, 1}; }, 0};
  RailProber prober{"n0", &keys, RailProbePolicy()};

  OneProber() { keys.SetPeer("n1", peer.nonce(), peer.public_key(), {"10.0.0.2"}); }
  RailProbeBytes Signed(const RailProbe& probe) const { return EncodeRailProbe(probe, *peer.Agree(own.nonce(), own.public_key())); }
  // The answer of the peer.
  RailProbeBytes Answer(const RailPing& ping) const {
    RailProbe pong = *DecodeRailProbe(ping.bytes);
    pong.kind = RailProbeKind::kPong;
    std::swap(pong.to_nonce, pong.from_nonce);
    return Signed(pong);
  }
  std::vector<RailPing> FirstPings() {
    std::vector<RailPing> pings;
    for (Nanos now = kMs; pings.empty(); now += kRailProbeTick) pings = prober.Tick(now);
    return pings;
  }
};

TEST(RailProber, ARestartedDaemonIsReceivedUnderItsNewNonce) {
  OneProber one;
  RailTarget target = {{{"n0", "rail0"}, {"n1", "rail0"}}, "10.0.0.2", 7460, one.peer.nonce(), true};
  one.prober.SetTargets({target}, kMs);
  const std::vector<RailPing> pings = one.FirstPings();
  EXPECT_EQ(pings.size(), 1U);
  EXPECT_EQ(DecodeRailProbe(pings[0].bytes)->to_nonce, one.peer.nonce());
  target.nonce = 33;
  one.prober.SetTargets({target}, kMs);
  EXPECT_FALSE(one.prober.Receive("rail0", "10.0.0.2", one.Answer(pings[0]), kMs).has_value());
  EXPECT_EQ(one.prober.counts().unknown, 1U);
  EXPECT_EQ(one.prober.Pairs()[0].state, PairState::kUnknown);
}

TEST(RailProber, OnlyPingsOfTheClusterForThisNicAreAnswered) {
  OneProber one;
  RailProber& prober = one.prober;
  RailProbe ping = {RailProbeKind::kPing, one.own.nonce(), one.peer.nonce(), 5, 6, 7, Fnv1a64("n0/rail0")};
  const auto answer = prober.Receive("rail0", "10.0.0.2", one.Signed(ping), kMs);
  ASSERT_TRUE(answer.has_value());
  const RailProbe pong = *DecodeRailProbe(answer->bytes);
  EXPECT_EQ(pong, (RailProbe{RailProbeKind::kPong, one.peer.nonce(), one.own.nonce(), 5, 6, 7, Fnv1a64("n0/rail0")}));
  EXPECT_TRUE(IsAuthentic(answer->bytes, *one.peer.Agree(one.own.nonce(), one.own.public_key())));
  EXPECT_FALSE(prober.Receive("rail1", "10.0.0.2", one.Signed(ping), kMs).has_value());
  EXPECT_EQ(prober.counts().misrouted, 1U);
  EXPECT_FALSE(prober.Receive("rail0", "10.0.0.3", one.Signed(ping), kMs).has_value()) << "not an address of the peer's";
  EXPECT_EQ(prober.counts().unknown, 1U);
  EXPECT_FALSE(prober.Receive("rail0", "10.0.0.2", {}, kMs).has_value());
  EXPECT_EQ(prober.counts().malformed, 1U);
  EXPECT_FALSE(prober.Receive("rail0", "10.0.0.2", answer->bytes, kMs).has_value()) << "our own words, sent back";
  EXPECT_EQ(prober.counts().unknown, 2U);
  ping.to_nonce += 1;
  EXPECT_FALSE(prober.Receive("rail0", "10.0.0.2", one.Signed(ping), kMs).has_value());
  EXPECT_EQ(prober.counts().unknown, 3U);
}

// An attacker that reads the network, or a view, knows all numbers: without the key of the pair that is worth nothing.
TEST(RailProber, ASenderWithTheNoncesAndNotTheKeyIsNeitherAnsweredNorBelieved) {
  OneProber one;
  one.prober.SetTargets({{{{"n0", "rail0"}, {"n1", "rail0"}}, "10.0.0.2", 7460, one.peer.nonce(), true}}, kMs);
  const RailPing ping = one.FirstPings()[0];
  RailProbe forged = *DecodeRailProbe(ping.bytes);
  forged.kind = RailProbeKind::kPong;
  std::swap(forged.to_nonce, forged.from_nonce);
  // The best guesses: no key, the public ones, that of another node with a valid certificate.
  const ProbeIdentity other(ProbeSecret{0, 3});
  ProbeMacKey public_key;
  std::copy(one.own.public_key().begin(), one.own.public_key().end(), public_key.begin());
  const ProbeMacKey keys[] = {ProbeMacKey{}, public_key, *other.Agree(one.own.nonce(), one.own.public_key())};
  uint64_t refused = 0;
  for (const ProbeMacKey& key : keys) {
    EXPECT_FALSE(one.prober.Receive("rail0", "10.0.0.2", EncodeRailProbe(forged, key), 2 * kMs).has_value());
    RailProbe asked = forged;
    asked.kind = RailProbeKind::kPing;
    asked.nic_hash = Fnv1a64("n0/rail0");
    EXPECT_FALSE(one.prober.Receive("rail0", "10.0.0.2", EncodeRailProbe(asked, key), 2 * kMs).has_value());
    refused += 2;
  }
  EXPECT_EQ(one.prober.counts().forged, refused);
  EXPECT_EQ(one.prober.Pairs()[0].state, PairState::kUnknown);
  EXPECT_FALSE(one.prober.Receive("rail0", "10.0.0.2", one.Answer(ping), 3 * kMs).has_value());
  EXPECT_EQ(one.prober.Pairs()[0].state, PairState::kUp);
}

TEST(RailProber, PairsAreBoundedAndTheActiveOnesComeFirst) {
  OneProber one;
  RailProber& prober = one.prober;
  std::vector<RailTarget> targets;
  for (int i = 0; i < 3000; ++i)
    targets.push_back({{{"n0", "rail0"}, {"n" + std::to_string(i + 1), "rail0"}}, "10.0.0.1", 1, 1, i >= 2500});
  prober.SetTargets(targets, kMs);
  const auto pairs = prober.Pairs();
  EXPECT_EQ(pairs.size(), kRailPairsMax);
  EXPECT_EQ(std::count_if(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.active; }), 500);
  prober.SetTargets({}, kMs);
  EXPECT_TRUE(prober.Pairs().empty());
}

// How long n0 takes to find that a port of user 1's only peer is dead, while user 2's jobs name this many pairs, which all answer.
Nanos TimeToSilence(size_t crowd, int seed) {
  OneProber one;
  RailProber& prober = one.prober;
  Nanos now = 1000 * kNanosPerSecond + seed * 7 * kMs;
  std::vector<RailTarget> targets;
  for (int rail = 0; rail < 4; ++rail) {
    const std::string nic = "rail" + std::to_string(rail);
    targets.push_back({{{"n0", nic}, {"peer", nic}}, "10.0.0.2", 1, one.peer.nonce(), true, 1});
  }
  for (size_t i = 0; i < crowd; ++i)
    targets.push_back({{{"n0", "rail0"}, {"crowd" + std::to_string(i), "rail0"}}, "10.0.0.2", 1, one.peer.nonce(), true, 2});
  for (const RailTarget& target : targets) one.keys.SetPeer(target.key.peer.node, one.peer.nonce(), one.peer.public_key(), {"10.0.0.2"});
  prober.SetTargets(targets, now);
  Nanos died = 0;
  for (const Nanos begin = now; now < begin + 60 * kNanosPerSecond; now += kRailProbeTick) {
    if (died == 0 && now - begin > 20 * kNanosPerSecond) died = now;
    for (const RailPing& ping : prober.Tick(now)) {
      if (died != 0 && ping.nic == "rail3") continue;
      prober.Receive(ping.nic, "10.0.0.2", one.Answer(ping), now + kMs);
    }
    for (const RailPairStatus& pair : prober.Pairs())
      if (died != 0 && pair.key.peer == NicKey{"peer", "rail3"} && pair.state == PairState::kSilent) return now - died;
  }
  return INT64_MAX;
}

// A job that names very many nodes takes no time from another user's.
TEST(RailProber, OneUsersPairsDoNotDelayAnothersVerdict) {
  Nanos alone = 0, crowded = 0;
  for (int seed = 0; seed < 10; ++seed) {
    alone += TimeToSilence(0, seed) / 10;
    crowded += TimeToSilence(1000, seed) / 10;
  }
  std::printf("to silence: %.0f ms alone, %.0f ms beside another user's 1,000 pairs\n", static_cast<double>(alone) / kMs,
              static_cast<double>(crowded) / kMs);
  EXPECT_LT(crowded, alone * 6 / 5);
}

}  // namespace
}  // namespace r2cc::health
