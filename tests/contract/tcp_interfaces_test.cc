// What happens to interfaces and not to transports: they change their addresses, and they are made anew.
#include "tests/contract/fixture.h"
#include "tests/contract/tcp/tcp_world.h"

namespace r2cc::contract {
namespace {

constexpr Nanos kInUseWithin = 2 * kSecond;
constexpr int kRail = 1;

class Interfaces : public Contract {
 protected:
  TcpWorld* world() { return static_cast<TcpWorld*>(world_.get()); }

  // With traffic on all rails, `change` is made to a rail of `end`: it is in use again soon, and nothing is lost.
  void ExpectBackAfter(const char* what, End end, const std::function<void()>& change) {
    SCOPED_TRACE(std::string(what) + ", end " + std::to_string(end));
    const int links_up = LinksUp(0, kRail), fences = Fences(0, kRail);
    ASSERT_TRUE(TrafficMore(4));
    change();
    const Nanos since = world_->Now();
    ASSERT_TRUE(TrafficUntil([&] { return LinksUp(0, kRail) > links_up; })) << "the rail does not come back";
    EXPECT_LT(world_->Now() - since, kInUseWithin);
    EXPECT_GT(Fences(0, kRail), fences);
    const uint64_t left = world_->LeftBytes(0, kRail);
    ASSERT_TRUE(TrafficUntil([&] { return world_->LeftBytes(0, kRail) > left + 4 * kLarge; })) << "the rail carries nothing";
    ExpectAllWell();
  }
};

TEST_P(Interfaces, ARailIsRenumberedAndInUseAgain) {
  Make();
  Start(kRails);
  for (const End end : {0, 1, 1, 0}) ExpectBackAfter("renumbered", end, [&] { world()->Renumber(end, kRail); });
}

TEST_P(Interfaces, ARecreatedInterfaceIsInUseAgain) {
  Make();
  Start(kRails);
  for (const End end : {0, 1}) ExpectBackAfter("made anew", end, [&] { world()->Remake(end, kRail); });
}

TEST_P(Interfaces, ARecreatedInterfaceIsInUseWithAnotherAddress) {
  Make();
  Start(kRails);
  for (const End end : {0, 1})
    ExpectBackAfter("made anew and renumbered", end, [&] {
      world()->Remake(end, kRail);
      world()->Renumber(end, kRail);
    });
}

INSTANTIATE_TEST_SUITE_P(Tcp, Interfaces, testing::Values(TcpTransport()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace r2cc::contract
