#include "plan/routes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace r2cc::plan {
namespace {

PlannedNic Nic(const std::string& name, uint16_t weight) {
  return {"n0", name, weight > 0 ? PlannedState::kHealthy : PlannedState::kFailed, weight};
}

// Four GPUs and four NICs in pairs behind two switches: own NIC 0, the switch's other one 1, all others 4.
std::vector<GpuModel> FourGpus() { return {{"g0", {0, 1, 4, 4}}, {"g1", {1, 0, 4, 4}}, {"g2", {4, 4, 0, 1}}, {"g3", {4, 4, 1, 0}}}; }

std::vector<std::string> Chain(const GpuRoute& route) {
  std::vector<std::string> names;
  for (const GpuHop& hop : route.chain) names.push_back(hop.nic + ":" + std::to_string(hop.weight_permille));
  return names;
}

TEST(Routes, EachGpuHasItsNearestNicAndThenTheNextNearest) {
  const auto routes = MakeRoutes(FourGpus(), {Nic("a", 1000), Nic("b", 1000), Nic("c", 1000), Nic("d", 1000)});
  ASSERT_EQ(routes.size(), 4U);
  EXPECT_EQ(Chain(routes[0]), (std::vector<std::string>{"a:1000", "b:0", "c:0", "d:0"}));
  EXPECT_EQ(Chain(routes[3]), (std::vector<std::string>{"d:1000", "c:0", "a:0", "b:0"}));
}

TEST(Routes, ADeadNicsGpuMovesToTheNextAndSharesIt) {
  const auto routes = MakeRoutes(FourGpus(), {Nic("a", 0), Nic("b", 1000), Nic("c", 1000), Nic("d", 1000)});
  EXPECT_EQ(Chain(routes[0]), (std::vector<std::string>{"b:1000", "c:0", "d:0", "a:0"}));
  EXPECT_EQ(Chain(routes[1]), (std::vector<std::string>{"b:1000", "c:0", "d:0", "a:0"}));
}

TEST(Routes, EquallyNearNicsAreWeighedByWhatIsLeftOfThem) {
  // Two GPUs before three NICs; the second is home to both, the third runs at a quarter.
  const std::vector<GpuModel> gpus = {{"g0", {1, 1, 4}}, {"g1", {4, 1, 1}}};
  const auto routes = MakeRoutes(gpus, {Nic("a", 1000), Nic("b", 1000), Nic("c", 250)});
  EXPECT_EQ(Chain(routes[0]), (std::vector<std::string>{"a:1000", "b:500", "c:0"}));
  EXPECT_EQ(Chain(routes[1]), (std::vector<std::string>{"b:1000", "c:500", "a:0"}));
}

TEST(Routes, UnknownDistancesAreTheFarthest) {
  const auto routes = MakeRoutes({{"g0", {kDistanceUnknown, 3}}, {"g1", {}}}, {Nic("a", 1000), Nic("b", 1000)});
  EXPECT_EQ(Chain(routes[0])[0], "b:1000");
  EXPECT_EQ(Chain(routes[1]), (std::vector<std::string>{"a:1000", "b:500"}));
}

// Every combination of states of four NICs, weights and a DGX-like arrangement: the check holds, and the nearest usable NIC comes first.
TEST(Routes, EveryCombination) {
  const std::vector<uint16_t> weights = {0, 1, 250, 1000};
  for (int code = 0; code < 256; ++code) {
    std::vector<PlannedNic> nics;
    for (int i = 0, rest = code; i < 4; ++i, rest /= 4) nics.push_back(Nic(std::string(1, static_cast<char>('a' + i)), weights[rest % 4]));
    const auto gpus = FourGpus();
    const auto routes = MakeRoutes(gpus, nics);
    ASSERT_EQ(CheckRoutes(routes, gpus, nics), "") << code;
    for (size_t g = 0; g < routes.size(); ++g) {
      bool usable_ended = false;
      uint8_t last = 0;
      for (const GpuHop& hop : routes[g].chain) {
        const bool usable = nics[hop.nic[0] - 'a'].weight_permille > 0;
        ASSERT_FALSE(usable && usable_ended) << code;
        if (usable) {
          ASSERT_GE(hop.distance, last) << code;
          last = hop.distance;
        }
        usable_ended |= !usable;
      }
    }
  }
}

TEST(Routes, TheCheckRefusesWhatIsWrong) {
  const auto gpus = FourGpus();
  const std::vector<PlannedNic> nics = {Nic("a", 1000), Nic("b", 0), Nic("c", 1000), Nic("d", 1000)};
  const auto good = MakeRoutes(gpus, nics);
  ASSERT_EQ(CheckRoutes(good, gpus, nics), "");
  auto bad = good;
  bad.pop_back();
  EXPECT_EQ(CheckRoutes(bad, gpus, nics), "3 routes for 4 GPUs");
  bad = good;
  bad[0].chain.pop_back();
  EXPECT_EQ(CheckRoutes(bad, gpus, nics), "GPU g0 leaves out a NIC");
  bad = good;
  bad[0].chain[1] = bad[0].chain[0];
  EXPECT_EQ(CheckRoutes(bad, gpus, nics), "GPU g0 has NIC a twice");
  bad = good;
  bad[0].chain.back().weight_permille = 1;
  EXPECT_EQ(CheckRoutes(bad, gpus, nics), "GPU g0 has weight on NIC b, which may not carry");
  bad = good;
  bad[0].chain[0].weight_permille = 0;
  EXPECT_EQ(CheckRoutes(bad, gpus, nics), "GPU g0 has no NIC that carries");
  bad = good;
  bad[0].chain[0].nic = "x";
  EXPECT_EQ(CheckRoutes(bad, gpus, nics), "GPU g0 goes over NIC x, which the plan does not have");
  bad = good;
  bad[0].chain[0].weight_permille = 1001;
  EXPECT_EQ(CheckRoutes(bad, gpus, nics), "GPU g0 has more than full weight on NIC a");
}

}  // namespace
}  // namespace r2cc::plan
