#include "health/io/netlink_link_watch.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/event_loop.h"

namespace r2cc::health {
namespace {

constexpr Nanos kPatience = 10 * kNanosPerSecond;

TEST(NetlinkLinkWatch, AnEventBecomesAFact) {
  NetEvent event;
  event.kind = NetEvent::Kind::kLink;
  event.ifindex = 4;
  event.name = "eth0";
  event.admin_up = true;
  event.carrier_up = true;
  event.mac = {2, 0, 0, 0, 0xab, 1};
  EXPECT_EQ(ToLinkFact(event), (LinkFact{"eth0", 4, true, true, "02:00:00:00:ab:01"}));
  event.carrier_up = false;
  EXPECT_FALSE(ToLinkFact(event).up);
  event.carrier_up = true;
  event.admin_up = false;
  EXPECT_FALSE(ToLinkFact(event).up);
  event.admin_up = true;
  event.kind = NetEvent::Kind::kLinkRemoved;
  event.mac = {};
  EXPECT_EQ(ToLinkFact(event), (LinkFact{"eth0", 4, false, false, ""}));
}

TEST(NetlinkLinkWatch, TheListIsThereWhenStartReturns) {
  EventLoop loop;
  NetlinkLinkWatch watch(&loop);
  std::vector<LinkFact> all;
  int lists = 0;
  const absl::Status started = watch.Start([&](const std::vector<LinkFact>& facts, bool complete) {
    if (!complete) return;
    all = facts;
    ++lists;
  });
  ASSERT_TRUE(started.ok()) << started;
  EXPECT_EQ(lists, 1);
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const LinkFact& fact) { return fact.interface == "lo" && fact.present; }));
}

// Runs `test` on a thread of its own in a network namespace of its own; false if this user may not make one.
bool InOwnNamespace(const std::function<void()>& test) {
  bool made = false;
  std::thread thread([&] {
    made = unshare(CLONE_NEWNET) == 0;
    if (made) test();
  });
  thread.join();
  return made;
}

// A watch in a namespace with a pair of veths, and the received facts about one of them.
class Rig {
 public:
  Rig() {
    Ip("link add rail0 type veth peer name far0");
    Ip("link set rail0 up");
    Ip("link set far0 up");
  }
  void Start() {
    const absl::Status started = watch_.Start([this](const std::vector<LinkFact>& facts, bool complete) {
      if (complete) ++lists_;
      for (const LinkFact& fact : facts)
        if (fact.interface == "rail0") rail_ = fact;
    });
    ASSERT_TRUE(started.ok()) << started;
  }
  void Ip(const std::string& arguments) { ASSERT_EQ(std::system(("ip " + arguments).c_str()), 0) << arguments; }
  // Runs the loop until `done`, which is looked at once a millisecond. The loop can run only once, so the whole story is a
  // chain of steps.
  void Then(std::function<void()> act, std::function<bool()> done) { steps_.push_back({std::move(act), std::move(done)}); }
  void Run() {
    deadline_ = loop_.Now() + kPatience;
    loop_.RunAfter(0, [this] { Next(); });
    loop_.Run();
    EXPECT_TRUE(steps_.empty()) << steps_.size() << " steps left";
  }

  EventLoop loop_;
  NetlinkLinkWatch watch_{&loop_};
  LinkFact rail_;
  int lists_ = 0;

 private:
  struct Step {
    std::function<void()> act;
    std::function<bool()> done;
  };
  void Next() {
    if (steps_.empty()) return loop_.Stop();
    steps_.front().act();
    Poll();
  }
  void Poll() {
    if (steps_.front().done()) {
      steps_.erase(steps_.begin());
      return Next();
    }
    if (loop_.Now() > deadline_) return loop_.Stop();
    loop_.RunAfter(kNanosPerMs, [this] { Poll(); });
  }
  std::vector<Step> steps_;
  Nanos deadline_ = 0;
};

TEST(NetlinkLinkWatch, SeesARealLinkGoDownComeBackAndVanish) {
  const bool made = InOwnNamespace([] {
    Rig rig;
    ASSERT_NO_FATAL_FAILURE(rig.Start());
    EXPECT_TRUE(rig.rail_.present);
    const std::string mac = rig.rail_.mac;
    EXPECT_EQ(mac.size(), 17u);
    rig.Then([] {}, [&] { return rig.rail_.up; });
    rig.Then([&] { rig.Ip("link set far0 down"); }, [&] { return !rig.rail_.up; });  // the cable: only the carrier goes
    rig.Then([&] { rig.Ip("link set far0 up"); }, [&] { return rig.rail_.up; });
    rig.Then([&] { rig.Ip("link set rail0 down"); }, [&] { return !rig.rail_.up; });
    rig.Then([&] { rig.watch_.Refresh(); }, [&] { return rig.lists_ >= 2; });
    rig.Then([&] { rig.Ip("link set rail0 name rail9"); }, [&] { return !rig.rail_.present; });
    rig.Then([&] { rig.Ip("link set rail9 name rail0"); }, [&] { return rig.rail_.present; });
    rig.Then([&] { rig.Ip("link del rail0"); }, [&] { return !rig.rail_.present; });
    rig.Run();
  });
  if (!made) GTEST_SKIP() << "needs root: makes a network namespace";
}

}  // namespace
}  // namespace r2cc::health
