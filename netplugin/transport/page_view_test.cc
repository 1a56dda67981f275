#include "netplugin/transport/page_view.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/core/hash.h"

namespace r2cc::net {
namespace {

using plan::PlannedState;

std::vector<std::string> Nics(int count) {
  std::vector<std::string> nics;
  for (int i = 0; i < count; ++i) nics.push_back("rail" + std::to_string(i));
  return nics;
}

plan::Plan SomePlan() {
  plan::Plan plan;
  plan.nics = {{"n1", "rail0", PlannedState::kHealthy, 1000},
               {"n1", "rail1", PlannedState::kFailed, 0},
               {"n2", "rail2", PlannedState::kDegraded, 500}};
  plan.broken_paths = {{"n1", "rail0", "n2", "rail2"}, {"n1", "rail1", "n3", "rail0"}, {"n0", "rail3", "n1", "rail1"}};
  return plan;
}

TEST(PageView, ReportsTheStateOfThePage) {
  const PageView view(plan::PageCopyOf(SomePlan()), "train");
  const NamesOnPage n1("n1", Nics(3)), n2("n2", Nics(4));
  const PageView::Judgement judged = view.Judge(n1, n2);
  EXPECT_EQ(judged.local, (std::vector<RailVerdict>{{false, 1000}, {true, 0}, {}}));
  EXPECT_EQ(judged.remote, (std::vector<RailVerdict>{{}, {}, {false, 500}, {}}));
  EXPECT_EQ(judged.broken, (std::vector<RailPair>{{0, 2}}));
  EXPECT_TRUE(judged.IsBroken({0, 2}));
  EXPECT_FALSE(judged.IsBroken({2, 0}));
}

TEST(PageView, ThePathIsTheSameFromBothEnds) {
  const PageView view(plan::PageCopyOf(SomePlan()), "train");
  const NamesOnPage n0("n0", Nics(4)), n1("n1", Nics(3)), n2("n2", Nics(4)), n3("n3", Nics(1));
  EXPECT_EQ(view.Judge(n2, n1).broken, (std::vector<RailPair>{{2, 0}}));
  EXPECT_EQ(view.Judge(n3, n1).broken, (std::vector<RailPair>{{0, 1}}));
  EXPECT_EQ(view.Judge(n0, n1).broken, (std::vector<RailPair>{{3, 1}}));
  EXPECT_EQ(view.Judge(n1, n0).broken, (std::vector<RailPair>{{1, 3}}));
  EXPECT_TRUE(view.Judge(n0, n2).broken.empty());
}

// A pod's interfaces may be called as the NICs of the node that it runs on.
TEST(PageView, ReportsNothingAboutRailsThatNoDaemonHasMatched) {
  const PageView view(plan::PageCopyOf(SomePlan()), "train");
  const std::vector<RailInfo> rails = {{.nic = UnmatchedName("rail0")}, {.nic = UnmatchedName("rail1")}, {.nic = "rail1"}};
  const NamesOnPage pod("n1", rails), n2("n2", Nics(4));
  const PageView::Judgement judged = view.Judge(n2, pod);
  EXPECT_EQ(judged.remote, (std::vector<RailVerdict>{{}, {}, {true, 0}}));
  EXPECT_TRUE(judged.broken.empty());
  EXPECT_EQ(view.Judge(pod, n2).local, judged.remote);
  EXPECT_FALSE(IsMatched(UnmatchedName("rail0")));
  EXPECT_TRUE(IsMatched("rail0"));
  EXPECT_EQ(ShownName(UnmatchedName("rail0")), "rail0");
  EXPECT_EQ(ShownName("rail0"), "rail0");
  EXPECT_EQ(ShownName("("), "(") << "from the wire";
}

// "n3/fG0oF9PXZaxRaKAYT" has the hash of "n1/rail0", and no verdict on it counts for that one.
TEST(PageView, NamesOfOneHashAreKeptApart) {
  plan::Plan plan = SomePlan();
  plan.nics.push_back({"n3", "fG0oF9PXZaxRaKAYT", PlannedState::kHealthy, 700, {"train"}});
  plan.broken_paths = {{"n2", "rail2", "n3", "fG0oF9PXZaxRaKAYT"}};
  const PageView view(plan::PageCopyOf(plan, {1, 2}, "n0"), "train");
  const NamesOnPage n1("n1", Nics(3)), n2("n2", Nics(4)), n3("n3", std::vector<std::string>{"fG0oF9PXZaxRaKAYT"});
  EXPECT_EQ(view.Judge(n1, n2).local, (std::vector<RailVerdict>{{false, 1000}, {true, 0}, {}}));
  EXPECT_TRUE(view.Judge(n1, n2).broken.empty());
  EXPECT_EQ(view.Judge(n3, n2).local, (std::vector<RailVerdict>{{false, 0}})) << "drained for this job";
  EXPECT_EQ(view.Judge(n3, n2).broken, (std::vector<RailPair>{{0, 2}}));
}

TEST(PageView, WithoutAPageAllIsWell) {
  const PageView::Judgement judged = PageView().Judge(NamesOnPage("n1", Nics(2)), NamesOnPage("n2", Nics(1)));
  EXPECT_EQ(judged.local, std::vector<RailVerdict>(2));
  EXPECT_EQ(judged.remote, std::vector<RailVerdict>(1));
  EXPECT_TRUE(judged.broken.empty());
}

// As it was asked before, one name at a time.
TEST(PageView, AgreesWithThePageOnEveryPairOfASmallCluster) {
  constexpr int kNodes = 5, kRails = 3;
  plan::Plan plan;
  for (int node = 0; node < kNodes; ++node)
    for (int rail = 0; rail < kRails; ++rail)
      if ((node + rail) % 4 != 0)
        plan.nics.push_back({"n" + std::to_string(node), "rail" + std::to_string(rail),
                             (node * rail) % 3 == 2 ? PlannedState::kFailed : PlannedState::kHealthy,
                             static_cast<uint16_t>(100 * node + rail)});
  for (int a = 0; a < kNodes; ++a)
    for (int b = a + 1; b < kNodes; ++b)
      if ((a + b) % 2 == 1)
        plan.broken_paths.push_back(
            {"n" + std::to_string(a), "rail" + std::to_string(b % kRails), "n" + std::to_string(b), "rail" + std::to_string(a % kRails)});
  const plan::PageCopy page = plan::PageCopyOf(plan);
  const PageView view(page, "train");
  const std::vector<std::string> nics = Nics(kRails);
  for (int a = 0; a < kNodes; ++a)
    for (int b = 0; b < kNodes; ++b) {
      if (a == b) continue;
      const std::string here = "n" + std::to_string(a), there = "n" + std::to_string(b);
      const PageView::Judgement judged = view.Judge(NamesOnPage(here, nics), NamesOnPage(there, nics));
      for (uint16_t i = 0; i < kRails; ++i) {
        const plan::PageEntry* entry = page.Find(Fnv1a64(here), Fnv1a64(nics[i]));
        EXPECT_EQ(judged.local[i].failed, entry != nullptr && entry->state == static_cast<uint8_t>(PlannedState::kFailed));
        EXPECT_EQ(judged.local[i].weight_permille, entry == nullptr ? 1000 : entry->weight_permille);
        for (uint16_t j = 0; j < kRails; ++j) EXPECT_EQ(judged.IsBroken({i, j}), page.PathBroken(here, nics[i], there, nics[j]));
      }
    }
}

TEST(PageView, ADrainForOneJobIsNoneForOthers) {
  plan::Plan plan = SomePlan();
  plan.nics[0].drained_jobs = {"eval", "train"};
  const plan::PageCopy page = plan::PageCopyOf(plan);
  const NamesOnPage n1("n1", Nics(3)), n2("n2", Nics(4));
  for (const char* job : {"train", "eval", "other", ""}) {
    const bool drained = job == std::string("train") || job == std::string("eval");
    const RailVerdict first{false, static_cast<uint16_t>(drained ? 0 : 1000)};
    const PageView view(page, job);
    EXPECT_EQ(view.Judge(n1, n2).local, (std::vector<RailVerdict>{first, {true, 0}, {}})) << job;
    EXPECT_EQ(view.Judge(n2, n1).remote, (std::vector<RailVerdict>{first, {true, 0}, {}})) << job;
    EXPECT_EQ(view.Judge(n1, n2).broken, (std::vector<RailPair>{{0, 2}})) << job;
  }
}

}  // namespace
}  // namespace r2cc::net
