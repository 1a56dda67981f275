#include "netplugin/rails/link_tracker.h"

#include <gtest/gtest.h>

#include <cstring>

#include "netplugin/rails/fake_link_events.h"

namespace r2cc::net {
namespace {

using Kind = NetEvent::Kind;

class Tracker : public testing::Test {
 protected:
  Tracker() : tracker_(Rails()) {}

  static std::vector<Rail> Rails() {
    std::vector<Rail> rails(4);
    for (int i = 0; i < 3; ++i) {
      rails[i].index = i;
      rails[i].name = rails[i].interface = "eth" + std::to_string(i);
      rails[i].ifindex = 10 + i;
      rails[i].address = *ParseIpAddress("10.0.0." + std::to_string(i));
      rails[i].up = true;
    }
    rails[2].address = {};  // configured later
    rails[2].up = false;
    rails[3].index = 3;
    rails[3].address = *ParseIpAddress("127.0.0.1");
    rails[3].up = true;
    return rails;
  }

  // Each change as "rail up|REASON".
  std::string Apply(const NetEvent& event) {
    changes_.clear();
    tracker_.Apply(event, &changes_);
    std::string text;
    for (const RailLinkEvent& change : changes_) {
      EXPECT_EQ(change.up, std::string(change.reason) == "up");
      text += (text.empty() ? "" : ";") + std::to_string(change.rail) + " " + change.reason;
    }
    return text;
  }
  std::string Link(int ifindex, const std::string& name, bool admin, bool carrier) {
    NetEvent event;
    event.kind = Kind::kLink;
    event.ifindex = ifindex;
    event.name = name;
    event.admin_up = admin;
    event.carrier_up = carrier;
    return Apply(event);
  }
  std::string Removed(int ifindex) {
    NetEvent event;
    event.kind = Kind::kLinkRemoved;
    event.ifindex = ifindex;
    return Apply(event);
  }
  std::string Address(int ifindex, const std::string& address, bool added = true) {
    NetEvent event;
    event.kind = added ? Kind::kAddressAdded : Kind::kAddressRemoved;
    event.ifindex = ifindex;
    event.address = address;
    return Apply(event);
  }
  std::string AddressIs(int ifindex, const std::string& address, AddressState state) {
    NetEvent event;
    event.kind = Kind::kAddressAdded;
    event.ifindex = ifindex;
    event.address = address;
    event.state = state;
    return Apply(event);
  }
  std::string Mark(Kind kind) {
    NetEvent event;
    event.kind = kind;
    return Apply(event);
  }

  LinkTracker tracker_;
  std::vector<RailLinkEvent> changes_;
};

TEST_F(Tracker, CarrierAndAdmin) {
  EXPECT_EQ(Link(10, "eth0", true, true), "");
  EXPECT_EQ(Link(10, "eth0", true, false), "0 no carrier");
  EXPECT_EQ(Link(10, "eth0", true, false), "");
  EXPECT_EQ(Link(10, "eth0", false, false), "");
  EXPECT_EQ(Link(10, "eth0", true, true), "0 up");
  EXPECT_EQ(Link(11, "eth1", false, true), "1 interface down");
  EXPECT_EQ(Link(99, "eth9", false, false), "");
}

TEST_F(Tracker, ARailIsRenumbered) {
  EXPECT_EQ(Address(10, "10.0.0.0", false), "0 address removed");
  EXPECT_EQ(Address(11, "10.0.0.9"), "");
  EXPECT_EQ(Address(10, "10.0.0.9"), "0 up");
  EXPECT_EQ(changes_[0].address.text, "10.0.0.9");
  // It stays with what it has.
  EXPECT_EQ(Address(10, "10.0.0.0"), "");
  EXPECT_EQ(Address(10, "10.0.0.0", false), "");
}

TEST_F(Tracker, AnAddressThatTakesOverEndsWhatUsedTheOther) {
  EXPECT_EQ(Address(10, "10.0.0.9"), "");
  EXPECT_EQ(Address(10, "10.0.0.0", false), "0 address removed;0 up");
  EXPECT_EQ(changes_[1].address.text, "10.0.0.9");
}

TEST_F(Tracker, ARailKeepsItsFamilyAndWaitsForAnAddressThatWasMeantForIt) {
  EXPECT_EQ(Address(10, "fd00::1"), "");
  EXPECT_EQ(Address(10, "fe80::1"), "");
  EXPECT_EQ(Address(10, "10.0.0.0", false), "0 address removed");
  EXPECT_EQ(Address(10, "10.9.0.1"), "0 up");
}

TEST_F(Tracker, ADuplicateAddressIsNotUsed) {
  Rail rail;
  rail.interface = "eth0";
  rail.ifindex = 10;
  rail.address = *ParseIpAddress("fd00::1");
  rail.address.state.tentative = true;
  rail.up = true;
  tracker_ = LinkTracker({rail});
  EXPECT_EQ(AddressIs(10, "fd00::1", {.tentative = true}), "");
  EXPECT_EQ(AddressIs(10, "fd00::1", {.duplicate = true, .tentative = true}), "0 duplicate address");
  EXPECT_EQ(AddressIs(10, "fe80::1", {}), "") << "it comes by itself";
  EXPECT_EQ(AddressIs(10, "fd00::2", {.duplicate = true, .tentative = true}), "");
  EXPECT_EQ(AddressIs(10, "fd00::3", {}), "0 up");
  EXPECT_EQ(changes_[0].address.text, "fd00::3");
  EXPECT_EQ(AddressIs(10, "fd00::3", {.deprecated = true}), "") << "what uses it goes on";
  EXPECT_EQ(AddressIs(10, "fd00::4", {}), "");
  EXPECT_EQ(AddressIs(10, "fd00::3", {.duplicate = true}), "0 duplicate address;0 up");
  EXPECT_EQ(changes_[1].address.text, "fd00::4");
}

TEST_F(Tracker, ALinkLocalRailHasAnotherAddressOnANewInterface) {
  Rail rail;
  rail.interface = "eth0";
  rail.ifindex = 10;
  rail.address = *ParseIpAddress("fe80::1", 10);
  rail.up = true;
  tracker_ = LinkTracker({rail});
  EXPECT_EQ(Removed(10), "0 interface removed");
  EXPECT_EQ(Link(11, "eth0", true, true), "");
  EXPECT_EQ(Address(11, "fe80::2"), "0 up");
  EXPECT_EQ(changes_[0].address.text, "fe80::2");
  // The same address on another interface is another one for the kernel.
  EXPECT_EQ(Removed(11), "0 interface removed");
  EXPECT_EQ(Link(12, "eth0", true, true), "");
  EXPECT_EQ(Address(12, "fe80::2"), "0 up");
  EXPECT_NE(std::memcmp(&changes_[0].address.storage, &ParseIpAddress("fe80::2", 11)->storage, sizeof(sockaddr_storage)), 0);
}

TEST_F(Tracker, ARailThatWasNamedByItsAddressKeepsToIt) {
  std::vector<Rail> rails = Rails();
  rails[0].fixed_address = true;
  tracker_ = LinkTracker(rails);
  EXPECT_EQ(Address(10, "10.0.0.0", false), "0 address removed");
  EXPECT_EQ(Address(10, "10.0.0.9"), "");
  EXPECT_EQ(Address(10, "10.0.0.0"), "0 up");
}

TEST_F(Tracker, RailWithoutAddressTakesTheFirstOneMeantForIt) {
  EXPECT_EQ(Link(12, "eth2", true, true), "");
  EXPECT_EQ(Address(12, "fe80::1"), "");
  EXPECT_EQ(Address(12, "10.2.0.1"), "2 up");
  EXPECT_EQ(changes_[0].address.text, "10.2.0.1");
  EXPECT_EQ(Address(12, "10.2.0.1", false), "2 address removed");
  EXPECT_EQ(Address(12, "10.2.0.2"), "2 up");
  EXPECT_EQ(changes_[0].address.text, "10.2.0.2");
}

TEST_F(Tracker, RemovedInterfaceIsFollowedWhenItComesBack) {
  EXPECT_EQ(Removed(10), "0 interface removed");
  EXPECT_EQ(Link(10, "other", true, true), "");  // the number is somebody else's now
  EXPECT_EQ(Link(50, "eth0", true, true), "");
  EXPECT_EQ(Address(50, "10.0.0.0"), "0 up");
  EXPECT_EQ(Link(50, "eth0", true, false), "0 no carrier");
}

TEST_F(Tracker, ARecreatedInterfaceMayHaveAnotherAddress) {
  EXPECT_EQ(Removed(10), "0 interface removed");
  EXPECT_EQ(Link(50, "eth0", true, true), "");
  EXPECT_EQ(Address(50, "10.0.0.9"), "0 up");
  EXPECT_EQ(changes_[0].address.text, "10.0.0.9");
}

TEST_F(Tracker, AnInterfaceIsKnownByItsName) {
  EXPECT_EQ(Link(10, "old0", true, true), "0 interface removed");
  EXPECT_EQ(Link(10, "eth0", true, true), "0 up");
  EXPECT_EQ(Link(70, "new0", true, true), "");
  EXPECT_EQ(Address(70, "10.0.0.7"), "");
  EXPECT_EQ(Link(10, "old0", true, true), "0 interface removed");
  EXPECT_EQ(Link(70, "eth0", true, true), "0 up");
  EXPECT_EQ(changes_[0].address.text, "10.0.0.7");
}

TEST_F(Tracker, DumpOfTheSameStateChangesNothing) {
  EXPECT_EQ(Mark(Kind::kResync), "");
  EXPECT_EQ(Link(10, "eth0", true, true), "");
  EXPECT_EQ(Link(11, "eth1", true, true), "");
  EXPECT_EQ(Link(12, "eth2", true, true), "");
  EXPECT_EQ(Address(10, "10.0.0.0"), "");
  EXPECT_EQ(Address(11, "10.0.0.1"), "");
  EXPECT_EQ(Mark(Kind::kDumpDone), "");
}

TEST_F(Tracker, AnInterfaceThatIsMissingInADumpIsGone) {
  Mark(Kind::kResync);
  Link(10, "eth0", true, true);
  EXPECT_EQ(Mark(Kind::kDumpDone), "0 address removed;1 interface removed");
  EXPECT_EQ(Address(10, "10.0.0.0"), "0 up");
}

TEST_F(Tracker, InterfaceRecreatedWhileEventsWereLost) {
  Mark(Kind::kResync);
  EXPECT_EQ(Link(60, "eth0", true, true), "0 address removed");
  EXPECT_EQ(Link(11, "eth1", true, true), "");
  EXPECT_EQ(Address(60, "10.0.0.0"), "0 up");
  EXPECT_EQ(Address(11, "10.0.0.1"), "");
  EXPECT_EQ(Mark(Kind::kDumpDone), "");
}

TEST_F(Tracker, EventsDuringADumpActAtOnce) {
  Mark(Kind::kResync);
  EXPECT_EQ(Link(10, "eth0", true, false), "0 no carrier");
}

TEST_F(Tracker, AddressOnlyRailsNeverChange) {
  EXPECT_EQ(Link(1, "lo", false, false), "");
  Mark(Kind::kResync);
  EXPECT_EQ(Mark(Kind::kDumpDone).find("3 "), std::string::npos);
}

TEST(FakeLinkEvents, GivesEachEventOnce) {
  FakeLinkEvents fake;
  fake.Set(1, false);
  std::vector<RailLinkEvent> events;
  fake.Poll(&events);
  fake.Poll(&events);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].rail, 1);
  EXPECT_FALSE(events[0].up);
  EXPECT_EQ(NoLinkEvents().fd(), -1);
}

}  // namespace
}  // namespace r2cc::net
