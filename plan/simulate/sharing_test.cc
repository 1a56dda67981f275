#include "plan/simulate/sharing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace r2cc::plan {
namespace {

void Settle(Sharing& sharing) {
  sharing.Settle([](uint32_t) {});
}

TEST(SharingTest, SplitsAPortByWeight) {
  Sharing sharing({12});
  const Sharing::Use use{0, 1};
  const uint32_t light = sharing.Add(1, &use, 1);
  const uint32_t heavy = sharing.Add(3, &use, 1);
  Settle(sharing);
  EXPECT_DOUBLE_EQ(sharing.rate(light), 3);
  EXPECT_DOUBLE_EQ(sharing.rate(heavy), 9);
  sharing.Remove(heavy);
  Settle(sharing);
  EXPECT_DOUBLE_EQ(sharing.rate(light), 12);
}

// A stream that is held back elsewhere leaves its share to the others.
TEST(SharingTest, UnusedBandwidthGoesToTheOthers) {
  Sharing sharing({10, 2});
  const Sharing::Use both[] = {{0, 1}, {1, 1}};
  const uint32_t held = sharing.Add(1, both, 2);
  const uint32_t free = sharing.Add(1, both, 1);
  Settle(sharing);
  EXPECT_DOUBLE_EQ(sharing.rate(held), 2);
  EXPECT_DOUBLE_EQ(sharing.rate(free), 8);
}

TEST(SharingTest, AmountsCount) {
  Sharing sharing({10});
  const Sharing::Use five_fold{0, 5};
  const uint32_t stream = sharing.Add(1, &five_fold, 1);
  Settle(sharing);
  EXPECT_DOUBLE_EQ(sharing.rate(stream), 2);
  sharing.SetCapacity(0, 0);
  Settle(sharing);
  EXPECT_DOUBLE_EQ(sharing.rate(stream), 0);
}

// Random comings and goings: after each, no port carries more than it can, and each stream has a full port on which none has more for
// its weight. That is what weighted max-min fairness is. And it gets exactly the rates that changed.
TEST(SharingTest, IsMaxMinFairWhileTransfersComeAndGo) {
  std::mt19937_64 random(11);
  for (int world = 0; world < 40; ++world) {
    std::vector<double> capacity(2 + random() % 12);
    for (double& c : capacity) c = static_cast<double>(1 + random() % 4);
    Sharing sharing(capacity);
    struct Known {
      double weight;
      std::vector<Sharing::Use> uses;
      double rate = 0;
    };
    std::map<uint32_t, Known> streams;
    for (int event = 0; event < 60; ++event) {
      if (!streams.empty() && random() % 3 == 0) {
        const auto victim = std::next(streams.begin(), static_cast<long>(random() % streams.size()));
        sharing.Remove(victim->first);
        streams.erase(victim);
      } else {
        Known known{static_cast<double>(1 + random() % 3), {}};
        std::set<uint32_t> ports;
        for (uint64_t i = 0, n = 1 + random() % 3; i < n; ++i) ports.insert(static_cast<uint32_t>(random() % capacity.size()));
        for (const uint32_t port : ports) known.uses.push_back({port, random() % 4 == 0 ? 2.5 : 1});
        streams[sharing.Add(known.weight, known.uses.data(), static_cast<uint32_t>(known.uses.size()))] = known;
      }
      std::set<uint32_t> reported;
      sharing.Settle([&](uint32_t stream) { reported.insert(stream); });
      std::vector<double> load(capacity.size(), 0);
      std::vector<double> most(capacity.size(), 0);  // rate for its weight
      for (auto& [number, known] : streams) {
        EXPECT_EQ(reported.contains(number), sharing.rate(number) != known.rate);
        known.rate = sharing.rate(number);
        for (const Sharing::Use& use : known.uses) {
          load[use.port] += known.rate * use.amount;
          most[use.port] = std::max(most[use.port], known.rate / known.weight);
        }
      }
      for (size_t port = 0; port < capacity.size(); ++port) ASSERT_LE(load[port], capacity[port] * (1 + 1e-9));
      for (const auto& [number, known] : streams) {
        const bool bound = std::any_of(known.uses.begin(), known.uses.end(), [&](const Sharing::Use& use) {
          return load[use.port] > capacity[use.port] * (1 - 1e-9) && known.rate / known.weight >= most[use.port] * (1 - 1e-9);
        });
        ASSERT_TRUE(bound) << "world " << world << " event " << event << " stream " << number;
      }
    }
  }
}

}  // namespace
}  // namespace r2cc::plan
