#include "netplugin/transport/tcp/budget.h"

#include <gtest/gtest.h>

#include <utility>

namespace r2cc::net {
namespace {

constexpr uint32_t kKiB = 1024;
constexpr Nanos kMs = kNanosPerMs;

TEST(Budget, FollowsWhatIsKnownOfTheLink) {
  struct Row {
    BudgetFacts facts;  // rate, round trip, striped, sockets
    size_t sockets;
    uint32_t unsent_bytes;
    uint64_t held_bytes;
    uint32_t worker_call_bytes;
    const char* why;
  };
  const Row rows[] = {
      {{0, 0, false, 4}, 2, 256 * kKiB, 0, 256 * kKiB, "nothing is known"},
      {{0, 0, true, 1}, 1, 256 * kKiB, 0, 256 * kKiB, "one socket"},
      {{1e12, 0, false, 0}, 0, 1024 * kKiB, 0, 256 * kKiB, "none is greeted yet"},
      {{1e6, 0, false, 4}, 2, 128 * kKiB, 256 * kKiB, 128 * kKiB, "a chunk waits behind another"},
      {{1e6, 0, true, 4}, 2, 32 * kKiB, 96 * kKiB, 32 * kKiB, "an eager message fits"},
      {{60e6, 0, true, 4}, 2, 120'000, 300'000, 120'000, "two milliseconds are unsent, five are held"},
      {{80e6, 0, false, 4}, 2, 160'000, 400'000, 160'000, "also while flows keep to their links"},
      {{60e6, 3 * kMs, true, 4}, 2, 120'000, 660'000, 120'000, "and twice the round trip held"},
      {{50e6, 20 * kMs, true, 16}, 2, 100'000, 2'250'000, 100'000, "however long that is"},
      {{250e6, 0, false, 4}, 2, 500'000, 1'250'000, 256 * kKiB, "a worker leaves the rest to others"},
      {{1e9, 0, true, 4}, 2, 1024 * kKiB, 0, 256 * kKiB, "what TCP holds by itself is little for it"},
      {{1.3e9, 0, true, 4}, 3, 1024 * kKiB, 0, 256 * kKiB, "a socket for each 600 MB/s"},
      {{1e12, 0, true, 4}, 4, 1024 * kKiB, 0, 256 * kKiB, "there are no more"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message() << row.facts.rate_bytes_per_s << " B/s, " << row.facts.round_trip << " ns, striped "
                                    << row.facts.striped << ", sockets " << row.facts.sockets << ": " << row.why);
    const Budget budget = BudgetOf(row.facts);
    EXPECT_EQ(budget.sockets, row.sockets);
    EXPECT_EQ(budget.unsent_bytes, row.unsent_bytes);
    EXPECT_EQ(budget.held_bytes, row.held_bytes);
    EXPECT_EQ(budget.call_bytes(false), row.unsent_bytes);
    EXPECT_EQ(budget.call_bytes(true), row.worker_call_bytes);
  }
}

TEST(Budget, LeavesARateThatItKeepsLowRoomToGrow) {
  for (const Nanos round_trip : {kMs / 10, 3 * kMs, 20 * kMs}) {
    BudgetFacts facts{.rate_bytes_per_s = 1e6, .round_trip = round_trip, .striped = true};
    for (int rounds = 0; rounds < 50 && BudgetOf(facts).held_bytes > 0; ++rounds)
      facts.rate_bytes_per_s =
          static_cast<double>(BudgetOf(facts).held_bytes) / static_cast<double>(round_trip) * static_cast<double>(kNanosPerSecond);
    EXPECT_GT(facts.rate_bytes_per_s, 75e6) << round_trip;
  }
}

TEST(Budget, HasWorkersWhereProcessorsAreLeft) {
  for (const auto& [processors, workers] :
       {std::pair(1, 0), {2, 0}, {4, 0}, {5, 0}, {6, 1}, {7, 1}, {8, 6}, {12, 9}, {16, 12}, {22, 16}, {32, 16}, {256, 16}})
    EXPECT_EQ(WorkersFor(processors), workers) << processors;
}

}  // namespace
}  // namespace r2cc::net
