#include "health/view/localise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace r2cc::health {
namespace {

constexpr int kNodes = 4;
constexpr int kRails = 4;

NicKey Port(int node, int rail = 0) { return {"n" + std::to_string(node), "rail" + std::to_string(rail)}; }

// The possible faults in the 4-node, 4-rail cluster. `peer` < 0: the port of `node`; otherwise the path from `node` to `peer` (node <
// peer).
struct Broken {
  int rail;
  int node;
  int peer;
};

std::vector<Broken> EveryFault() {
  std::vector<Broken> all;
  for (int rail = 0; rail < kRails; ++rail)
    for (int node = 0; node < kNodes; ++node) {
      all.push_back({rail, node, -1});
      for (int peer = node + 1; peer < kNodes; ++peer) all.push_back({rail, node, peer});
    }
  return all;
}

bool PortBroken(const std::vector<Broken>& faults, int node, int rail) {
  return std::any_of(faults.begin(), faults.end(), [&](const Broken& one) { return one.rail == rail && one.node == node && one.peer < 0; });
}
bool PathBroken(const std::vector<Broken>& faults, int a, int b, int rail) {
  return std::any_of(faults.begin(), faults.end(), [&](const Broken& one) {
    return one.rail == rail && one.peer >= 0 && one.node == std::min(a, b) && one.peer == std::max(a, b);
  });
}

ProbeMatrix MatrixOf(const std::vector<Broken>& faults) {
  ProbeMatrix matrix;
  for (int rail = 0; rail < kRails; ++rail)
    for (int a = 0; a < kNodes; ++a)
      for (int b = a + 1; b < kNodes; ++b) {
        const bool silent = PortBroken(faults, a, rail) || PortBroken(faults, b, rail) || PathBroken(faults, a, b, rail);
        matrix.Add(Port(a, rail), Port(b, rail), silent ? PairVerdict::kSilent : PairVerdict::kAnswering);
      }
  return matrix;
}

void ExpectRight(const std::vector<Broken>& faults) {
  const ProbeMatrix matrix = MatrixOf(faults);
  for (int rail = 0; rail < kRails; ++rail)
    for (int node = 0; node < kNodes; ++node) {
      std::vector<NicKey> paths;
      std::vector<NicKey> dead;
      for (int peer = 0; peer < kNodes; ++peer) {
        if (peer == node) continue;
        if (PortBroken(faults, peer, rail))
          dead.push_back(Port(peer, rail));
        else if (PathBroken(faults, node, peer, rail))
          paths.push_back(Port(peer, rail));
      }
      const Fault fault = Localise(matrix, Port(node, rail));
      const std::string what = Port(node, rail).ToString() + ": " + FaultText(Port(node, rail), fault);
      if (PortBroken(faults, node, rail)) {
        ASSERT_EQ(fault.kind, FaultKind::kPort) << what;
        ASSERT_TRUE(fault.unusable);
      } else if (!paths.empty()) {
        ASSERT_EQ(fault.kind, FaultKind::kPath) << what;
        ASSERT_EQ(fault.peers, paths) << what;
        ASSERT_FALSE(fault.unusable);
      } else if (!dead.empty()) {
        ASSERT_EQ(fault.kind, FaultKind::kPeers) << what;
        ASSERT_EQ(fault.peers, dead) << what;
        ASSERT_FALSE(fault.unusable);
      } else {
        ASSERT_EQ(fault.kind, FaultKind::kNone) << what;
      }
    }
}

TEST(Localise, EverySingleFault) {
  ExpectRight({});
  for (const Broken& fault : EveryFault()) ExpectRight({fault});
}

TEST(Localise, EveryDoubleFault) {
  const std::vector<Broken> all = EveryFault();
  int pairs = 0;
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = i + 1; j < all.size(); ++j, ++pairs) ExpectRight({all[i], all[j]});
  EXPECT_EQ(pairs, 40 * 39 / 2);
}

// Every matrix of one rail, with pairs of which nothing is known, against every explanation of it: a definite verdict must be part of
// all the smallest ones; and where every pair is known, the verdict is inconclusive only if they differ.
constexpr std::array<std::pair<int, int>, 6> kPairs = {{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}};

// Bits 0..3: ports; 4..9: paths, in the order of kPairs.
bool Explains(unsigned faults, const std::array<PairVerdict, 6>& verdicts) {
  for (size_t i = 0; i < kPairs.size(); ++i) {
    const auto [a, b] = kPairs[i];
    const bool broken = ((faults >> a) & 1) != 0 || ((faults >> b) & 1) != 0 || ((faults >> (4 + i)) & 1) != 0;
    if (verdicts[i] != PairVerdict::kUnknown && broken != (verdicts[i] == PairVerdict::kSilent)) return false;
  }
  return true;
}

unsigned PathBit(int a, int b) {
  const auto found = std::find(kPairs.begin(), kPairs.end(), std::pair(std::min(a, b), std::max(a, b)));
  return 1U << (4 + (found - kPairs.begin()));
}

TEST(Localise, EveryMatrixOfOneRailAgainstEveryExplanation) {
  int undecided = 0;
  for (int code = 0; code < 729; ++code) {
    std::array<PairVerdict, 6> verdicts{};
    ProbeMatrix matrix;
    for (int i = 0, rest = code; i < 6; ++i, rest /= 3) {
      verdicts[i] = static_cast<PairVerdict>(rest % 3);
      matrix.Add(Port(kPairs[i].first), Port(kPairs[i].second), verdicts[i]);
    }
    unsigned in_all = ~0U;
    unsigned in_some = 0;
    int least = 99;
    for (unsigned faults = 0; faults < 1024; ++faults) {
      if (!Explains(faults, verdicts) || std::popcount(faults) > least) continue;
      if (std::popcount(faults) < least) {
        least = std::popcount(faults);
        in_all = ~0U;
        in_some = 0;
      }
      in_all &= faults;
      in_some |= faults;
    }
    for (int node = 0; node < kNodes; ++node) {
      const Fault fault = Localise(matrix, Port(node));
      const std::string what = "matrix " + std::to_string(code) + ": " + FaultText(Port(node), fault);
      if (fault.kind == FaultKind::kPort) {
        ASSERT_NE(in_all >> node & 1, 0U) << what;
      } else if (fault.kind != FaultKind::kInconclusive && fault.kind != FaultKind::kRail) {
        ASSERT_EQ(in_all >> node & 1, 0U) << what;
      }
      for (int peer = 0; peer < kNodes; ++peer) {
        if (std::find(fault.peers.begin(), fault.peers.end(), Port(peer)) == fault.peers.end()) continue;
        if (fault.kind == FaultKind::kPath) {
          ASSERT_NE(in_all & PathBit(node, peer), 0U) << what;
        } else if (fault.kind == FaultKind::kPeers) {
          ASSERT_NE(in_all >> peer & 1, 0U) << what;
        }
      }
      if (fault.kind != FaultKind::kInconclusive) continue;
      ++undecided;
      ASSERT_FALSE(fault.missing.empty()) << what;
      // If no port answers, or pairs are unknown, it may be more careful than that.
      bool differ = std::find(verdicts.begin(), verdicts.end(), PairVerdict::kAnswering) == verdicts.end() ||
                    std::find(verdicts.begin(), verdicts.end(), PairVerdict::kUnknown) != verdicts.end();
      for (int peer = 0; peer < kNodes; ++peer)
        if (peer != node) differ |= ((in_some ^ in_all) & (1U << node | 1U << peer | PathBit(node, peer))) != 0;
      ASSERT_TRUE(differ) << what;
    }
  }
  EXPECT_GT(undecided, 0);
}

TEST(Localise, TwoNodesAloneAreInconclusive) {
  ProbeMatrix matrix;
  matrix.Add(Port(0), Port(1), PairVerdict::kSilent);
  const Fault fault = Localise(matrix, Port(0));
  EXPECT_EQ(fault.kind, FaultKind::kInconclusive);
  EXPECT_FALSE(fault.unusable);
  EXPECT_EQ(fault.missing, "another node that probes both n0/rail0 and n1/rail0 on this rail");
}

TEST(Localise, ADirectCableIsTheCable) {
  ProbeMatrix matrix;
  matrix.AddCable(Port(0), Port(1));
  matrix.Add(Port(0), Port(1), PairVerdict::kSilent);
  for (const int node : {0, 1}) {
    const Fault fault = Localise(matrix, Port(node));
    EXPECT_EQ(fault.kind, FaultKind::kCable);
    EXPECT_TRUE(fault.unusable);
    EXPECT_EQ(FaultText(Port(node), fault),
              "cable between " + Port(node).ToString() + " and " + Port(1 - node).ToString() + ", or the port at one of its ends");
  }
}

TEST(Localise, AWholeRailIsReportedAsOne) {
  ProbeMatrix matrix;
  for (int a = 0; a < kNodes; ++a)
    for (int b = a + 1; b < kNodes; ++b) matrix.Add(Port(a), Port(b), PairVerdict::kSilent);
  for (int node = 0; node < kNodes; ++node) {
    EXPECT_EQ(Localise(matrix, Port(node)).kind, FaultKind::kRail);
    EXPECT_TRUE(Localise(matrix, Port(node)).unusable);
  }
}

TEST(Localise, APortThatReportsItselfDownExplainsSilence) {
  ProbeMatrix matrix = MatrixOf({{0, 1, -1}});
  matrix.AddDown(Port(1));
  EXPECT_EQ(Localise(matrix, Port(1)).kind, FaultKind::kNone);  // no verdict is needed
  EXPECT_EQ(Localise(matrix, Port(0)).kind, FaultKind::kNone);
}

// Nobody else speaks of a port that its own daemon has found to be dead: it stays the reason for what is silent to it.
TEST(Localise, APortThatReportsItselfDeadExplainsSilenceAroundIt) {
  ProbeMatrix matrix;
  matrix.Add(Port(0), Port(1), PairVerdict::kSilent);
  matrix.Add(Port(0), Port(2), PairVerdict::kAnswering);
  matrix.Add(Port(1), Port(3), PairVerdict::kAnswering);  // from before
  EXPECT_EQ(Localise(matrix, Port(0)).kind, FaultKind::kPath);
  matrix.AddDead(Port(1));
  const Fault fault = Localise(matrix, Port(0));
  EXPECT_EQ(fault.kind, FaultKind::kPeers);
  EXPECT_EQ(fault.peers, std::vector<NicKey>{Port(1)});
  EXPECT_FALSE(fault.unusable);
}

TEST(Localise, ADeadPortBearsNoWitnessAgainstAnother) {
  ProbeMatrix matrix;
  for (const int dead : {1, 2}) {
    matrix.Add(Port(0), Port(dead), PairVerdict::kSilent);
    matrix.Add(Port(dead), Port(3), PairVerdict::kAnswering);  // from before
    matrix.AddDead(Port(dead));
  }
  EXPECT_EQ(Localise(matrix, Port(0)).kind, FaultKind::kPeers);
  EXPECT_FALSE(Localise(matrix, Port(0)).unusable);
  // A third one that is silent to it, and that nobody else speaks of, leaves it open.
  matrix.Add(Port(0), Port(3), PairVerdict::kSilent);
  EXPECT_EQ(Localise(matrix, Port(0)).kind, FaultKind::kInconclusive);
  EXPECT_EQ(Localise(matrix, Port(0)).peers, std::vector<NicKey>{Port(3)});
}

TEST(Localise, EitherEndsSilenceCounts) {
  ProbeMatrix matrix;
  matrix.Add(Port(0), Port(1), PairVerdict::kAnswering);
  matrix.Add(Port(1), Port(0), PairVerdict::kSilent);
  EXPECT_EQ(matrix.Of(Port(0)).at(Port(1)), PairVerdict::kSilent);
  matrix.Add(Port(0), Port(1), PairVerdict::kAnswering);
  EXPECT_EQ(matrix.Of(Port(1)).at(Port(0)), PairVerdict::kSilent);
}

TEST(Localise, APortIsSharperThanARailAndARailThanInconclusive) {
  EXPECT_TRUE(IsSharper(FaultKind::kPort, FaultKind::kRail));
  EXPECT_TRUE(IsSharper(FaultKind::kRail, FaultKind::kInconclusive));
  EXPECT_TRUE(IsSharper(FaultKind::kPeers, FaultKind::kRail));
  EXPECT_FALSE(IsSharper(FaultKind::kRail, FaultKind::kPort));
  EXPECT_FALSE(IsSharper(FaultKind::kPort, FaultKind::kPort));
  EXPECT_FALSE(IsSharper(FaultKind::kPort, FaultKind::kCable));
}

}  // namespace
}  // namespace r2cc::health
