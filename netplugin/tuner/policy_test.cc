#include "netplugin/tuner/policy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace r2cc::tuner {
namespace {

using abi::Algorithm;
using abi::Function;
using abi::kCostIgnored;
using abi::Protocol;

constexpr int kAlgorithms = 7;
constexpr int kProtocols = 3;
constexpr uint64_t kMinBytes = 1 << 20;
constexpr Communicator kCommunicator{.ranks = 16, .nodes = 2, .collnet_min_bytes = kMinBytes};
constexpr Function kFunctions[] = {Function::kBroadcast, Function::kReduce, Function::kAllGather, Function::kReduceScatter,
                                   Function::kAllReduce};

int At(Algorithm algorithm, Protocol protocol = Protocol::kSimple, int protocols = kProtocols) {
  return static_cast<int>(algorithm) * protocols + static_cast<int>(protocol);
}

// What NCCL gives: CollNet has Simple alone, and is ignored where it is off.
std::vector<float> Costs(bool direct, bool chain) {
  std::vector<float> costs(kAlgorithms * kProtocols, kCostIgnored);
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing})
    for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple})
      costs[At(algorithm, protocol)] = 10.0f + static_cast<float>(At(algorithm, protocol));
  costs[At(Algorithm::kNvlsTree)] = 5;
  if (direct) costs[At(Algorithm::kCollNetDirect)] = 900;
  if (chain) costs[At(Algorithm::kCollNetChain)] = 800;
  return costs;
}

std::vector<float> Tuned(const Communicator& communicator, Function function, size_t bytes, std::vector<float> costs) {
  Tune(communicator, function, bytes, {costs.data(), kAlgorithms, kProtocols});
  return costs;
}

TEST(Tune, AnAllReduceFromTheThresholdOnTakesCollNet) {
  for (const size_t bytes : {kMinBytes, kMinBytes + 1, uint64_t{1} << 40}) {
    std::vector<float> want = Costs(true, true);
    want[At(Algorithm::kCollNetDirect)] = 0;
    EXPECT_EQ(Tuned(kCommunicator, Function::kAllReduce, bytes, Costs(true, true)), want);
    want = Costs(false, true);
    want[At(Algorithm::kCollNetChain)] = 0;
    EXPECT_EQ(Tuned(kCommunicator, Function::kAllReduce, bytes, Costs(false, true)), want);
  }
}

TEST(OffersCollNet, IsWhatMayBeChosen) {
  for (const bool direct : {false, true})
    for (const bool chain : {false, true}) {
      std::vector<float> costs = Costs(direct, chain);
      EXPECT_EQ(OffersCollNet({costs.data(), kAlgorithms, kProtocols}), direct || chain);
      EXPECT_FALSE(OffersCollNet({costs.data(), 2, kProtocols}));
      EXPECT_FALSE(OffersCollNet({costs.data(), kAlgorithms, 2}));
      EXPECT_FALSE(OffersCollNet({nullptr, kAlgorithms, kProtocols}));
    }
}

TEST(Tune, ASeatTakesTheTreeWhateverTheSize) {
  Communicator seat = kCommunicator;
  seat.way = abi::SeatWay::kTree;
  for (const size_t bytes : {size_t{1}, static_cast<size_t>(kMinBytes), size_t{1} << 40}) {
    std::vector<float> want = Costs(true, true);
    want[At(Algorithm::kNvlsTree)] = 0;
    EXPECT_EQ(Tuned(seat, Function::kAllReduce, bytes, Costs(true, true)), want);
    std::vector<float> without = Costs(true, true);
    without[At(Algorithm::kNvlsTree)] = kCostIgnored;
    want = without;
    want[At(Algorithm::kTree)] = 0;
    EXPECT_EQ(Tuned(seat, Function::kAllReduce, bytes, without), want);
    without[At(Algorithm::kTree)] = kCostIgnored;
    EXPECT_EQ(Tuned(seat, Function::kAllReduce, bytes, without), without);
  }
  EXPECT_EQ(Tuned(seat, Function::kAllGather, 1 << 20, Costs(true, true)), Costs(true, true));
  seat.nodes = 1;
  EXPECT_EQ(Tuned(seat, Function::kAllReduce, 1 << 20, Costs(true, true)), Costs(true, true));
}

TEST(Tune, WithAnAgreementCollNetIsForTheCommunicatorsThatWereMadeForIt) {
  Communicator agreed = kCommunicator;
  agreed.agreed = true;
  std::vector<float> want = Costs(true, true);
  for (const Algorithm algorithm : {Algorithm::kCollNetDirect, Algorithm::kCollNetChain}) want[At(algorithm)] = 1e30F;
  // Whatever R2CC_COLLNET_MIN_BYTES is: it belongs to the agreement.
  for (const size_t bytes : {size_t{1}, static_cast<size_t>(kMinBytes), size_t{1} << 40})
    EXPECT_EQ(Tuned(agreed, Function::kAllReduce, bytes, Costs(true, true)), want);
  EXPECT_EQ(Tuned(agreed, Function::kAllReduce, kMinBytes, Costs(false, false)), Costs(false, false));
  EXPECT_EQ(Tuned(agreed, Function::kAllGather, kMinBytes, Costs(true, true)), Costs(true, true));
  agreed.way = abi::SeatWay::kCollNet;
  want = Costs(true, true);
  want[At(Algorithm::kCollNetDirect)] = 0;
  EXPECT_EQ(Tuned(agreed, Function::kAllReduce, 1, Costs(true, true)), want);
  EXPECT_EQ(Choose(agreed, Function::kAllReduce, 1, true)->algorithm, Algorithm::kCollNetChain);
  EXPECT_FALSE(Choose(agreed, Function::kAllReduce, 1, false).has_value());
}

TEST(Choose, ASeatTakesTheTreeUnlessTheUserHasPinnedAnything) {
  Communicator seat{.ranks = 16, .nodes = 2, .way = abi::SeatWay::kTree};
  const auto choice = Choose(seat, Function::kAllReduce, 1, false);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->algorithm, Algorithm::kTree);
  EXPECT_EQ(choice->protocol, Protocol::kSimple);
  EXPECT_FALSE(Choose(seat, Function::kReduce, 1, false).has_value());
  seat.pinned = true;
  EXPECT_FALSE(Choose(seat, Function::kAllReduce, 1, false).has_value());
}

TEST(Tune, SmallerOnesAndOtherFunctionsAreLeftAlone) {
  for (const size_t bytes : {size_t{0}, size_t{1}, static_cast<size_t>(kMinBytes) - 1})
    EXPECT_EQ(Tuned(kCommunicator, Function::kAllReduce, bytes, Costs(true, true)), Costs(true, true));
  for (const Function function : kFunctions)
    if (function != Function::kAllReduce) {
      EXPECT_EQ(Tuned(kCommunicator, function, kMinBytes, Costs(true, true)), Costs(true, true));
    }
  for (const int unknown : {-1, 5, 14, 1 << 30})
    EXPECT_EQ(Tuned(kCommunicator, static_cast<Function>(unknown), kMinBytes, Costs(true, true)), Costs(true, true));
}

TEST(Tune, ChangesNoCostWhereCollNetIsOff) {
  Communicator always = kCommunicator;
  always.collnet_min_bytes = 0;
  for (const Function function : kFunctions)
    for (const size_t bytes : {size_t{0}, size_t{1} << 20, size_t{1} << 40})
      EXPECT_EQ(Tuned(always, function, bytes, Costs(false, false)), Costs(false, false));
}

TEST(Tune, ChangesNoCostWhereNoThresholdIsSet) {
  Communicator unset = kCommunicator;
  unset.collnet_min_bytes.reset();
  EXPECT_EQ(Tuned(unset, Function::kAllReduce, size_t{1} << 40, Costs(true, true)), Costs(true, true));
}

TEST(Tune, ZeroMeansEveryAllReduce) {
  Communicator always = kCommunicator;
  always.collnet_min_bytes = 0;
  EXPECT_EQ(Tuned(always, Function::kAllReduce, 0, Costs(false, true))[At(Algorithm::kCollNetChain)], 0);
}

TEST(Tune, OneNodeHasNothingToPlanAndImpossibleSizesAreNone) {
  for (const auto& [ranks, nodes] : std::vector<std::pair<size_t, size_t>>{
           {8, 1}, {8, 0}, {0, 0}, {1, 2}, {SIZE_MAX, 2}, {SIZE_MAX, SIZE_MAX}, {16, SIZE_MAX}, {size_t{1} << 31, 2}}) {
    Communicator communicator = kCommunicator;
    communicator.ranks = ranks;
    communicator.nodes = nodes;
    EXPECT_EQ(Tuned(communicator, Function::kAllReduce, kMinBytes, Costs(true, true)), Costs(true, true)) << ranks << " " << nodes;
    EXPECT_FALSE(Choose(communicator, Function::kAllReduce, kMinBytes, true).has_value());
  }
  for (const size_t negative : {SIZE_MAX, SIZE_MAX - 4095, static_cast<size_t>(PTRDIFF_MAX) + 1}) {
    EXPECT_EQ(Tuned(kCommunicator, Function::kAllReduce, negative, Costs(true, true)), Costs(true, true));
    EXPECT_FALSE(Choose(kCommunicator, Function::kAllReduce, negative, true).has_value());
  }
}

// An estimate that is no finite number is not to be chosen, and not to be compared with.
TEST(Tune, EntriesThatAreNoEstimatesAreLeftAlone) {
  for (const float odd : {kCostIgnored, -0.5f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> costs = Costs(true, true);
    costs[At(Algorithm::kCollNetDirect)] = odd;
    const std::vector<float> tuned = Tuned(kCommunicator, Function::kAllReduce, kMinBytes, costs);
    costs[At(Algorithm::kCollNetChain)] = 0;
    EXPECT_EQ(std::memcmp(tuned.data(), costs.data(), costs.size() * sizeof(float)), 0) << odd;
  }
}

// Whatever two ranks estimate, they choose alike.
TEST(Tune, TheEstimatesThemselvesDoNotMatter) {
  std::vector<float> costs = Costs(true, true);
  costs[At(Algorithm::kCollNetDirect)] = 1e9f;
  costs[At(Algorithm::kCollNetChain)] = 1e-9f;
  const std::vector<float> tuned = Tuned(kCommunicator, Function::kAllReduce, kMinBytes, costs);
  EXPECT_EQ(tuned[At(Algorithm::kCollNetDirect)], 0);
  EXPECT_EQ(tuned[At(Algorithm::kCollNetChain)], 1e-9f);
}

// All that may be written lies between the sentinels.
TEST(Tune, OnlyEntriesOfAValidTableAreChanged) {
  Tune(kCommunicator, Function::kAllReduce, kMinBytes, {nullptr, kAlgorithms, kProtocols});
  const std::vector<float> before(256, 7.0f);
  for (const auto& [algorithms, protocols] :
       std::vector<std::pair<int, int>>{{0, 3}, {-1, 3}, {7, 0}, {7, -3}, {7, 2}, {-7, -3}, {2, 3}, {65, 3}, {7, 65}, {1 << 30, 1 << 30}}) {
    std::vector<float> costs = before;
    Tune(kCommunicator, Function::kAllReduce, kMinBytes, {costs.data() + 128, algorithms, protocols});
    EXPECT_EQ(costs, before) << algorithms << " by " << protocols;
  }
  // Of three rows, the last is Direct; and with a fourth column the rows are longer.
  std::vector<float> costs = before;
  Tune(kCommunicator, Function::kAllReduce, kMinBytes, {costs.data(), 3, 3});
  EXPECT_EQ(costs[8], 0);
  costs = before;
  Tune(kCommunicator, Function::kAllReduce, kMinBytes, {costs.data(), 7, 4});
  EXPECT_EQ(costs[At(Algorithm::kCollNetDirect, Protocol::kSimple, 4)], 0);
  costs[10] = 7;
  EXPECT_EQ(costs, before);
}

TEST(Choose, IsTheSameRuleWithoutCosts) {
  const std::optional<Choice> choice = Choose(kCommunicator, Function::kAllReduce, kMinBytes, true);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->algorithm, Algorithm::kCollNetChain);
  EXPECT_EQ(choice->protocol, Protocol::kSimple);
  EXPECT_FALSE(Choose(kCommunicator, Function::kAllReduce, kMinBytes - 1, true).has_value());
  EXPECT_FALSE(Choose(kCommunicator, Function::kAllReduce, kMinBytes, false).has_value());
  for (const Function function : kFunctions)
    EXPECT_EQ(Choose(kCommunicator, function, kMinBytes, true).has_value(), function == Function::kAllReduce);
}

TEST(Choose, AUsersPinnedAlgorithmStays) {
  Communicator pinned = kCommunicator;
  pinned.pinned = true;
  EXPECT_FALSE(Choose(pinned, Function::kAllReduce, kMinBytes, true).has_value());
  // A cost table shows it by itself.
  EXPECT_EQ(Tuned(pinned, Function::kAllReduce, kMinBytes, Costs(false, true))[At(Algorithm::kCollNetChain)], 0);
}

}  // namespace
}  // namespace r2cc::tuner
