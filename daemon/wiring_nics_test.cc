// NICs that come and go with the configuration while the daemon runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/wiring_rig.h"

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;

class WiringNicsTest : public WiringTest {
 protected:
  // As if the files had these NICs now. The applied and the pending changes, a line each.
  std::vector<std::string> Reload(const std::string& nics) {
    const auto config =
        ParseConfig("node: 'n0' insecure: true peers { node: 'n1' address: 'h1:7460' } peers { node: 'n2' address: 'h2:7460' } " + nics,
                    "test.conf", {"/run", "host", "", "/lib"});
    EXPECT_TRUE(config.ok()) << config.status();
    loader_.Set(LoadedConfig{*config, DefaultGrants(/*operators_gid=*/-1, /*insecure=*/true)});
    std::vector<std::string> lines;
    wiring_->backend().Ask(v1::ReloadRequest(), kRoot, [&](absl::StatusOr<v1::ReloadReply> reply) {
      ASSERT_TRUE(reply.ok()) << reply.status();
      lines.assign(reply->applied().begin(), reply->applied().end());
      for (const std::string& line : reply->state().needs_restart()) lines.push_back("waits: " + line);
    });
    Settle();
    core_.Advance(3000 * kMs);
    return lines;
  }
  std::vector<std::string> Nics() {
    v1::NodeView stored;
    EXPECT_TRUE(stored.ParseFromString(store_->entries().at("/r2cc/nodes/n0")));
    std::vector<std::string> nics;
    for (const v1::NicView& nic : stored.nics()) nics.push_back(nic.name() + " " + nic.address() + " " + v1::NicState_Name(nic.state()));
    return nics;
  }
  static constexpr char kRail0[] = "nics { name: 'rail0' interface: 'eth0' } ";
  static constexpr char kRail1[] = "nics { name: 'rail1' interface: 'eth1' } ";
  static constexpr char kRail2[] = "nics { name: 'rail2' address: '127.0.0.9' } ";
};

TEST_F(WiringNicsTest, AreInTheViewInThePlanAndProbed) {
  wiring_->SetPeerAddress("0.0.0.0:7460");
  links_->Set("eth7", true, "02:00:00:00:00:07");
  addresses_.Set({{"eth0", {"10.0.0.1"}}, {"eth1", {"10.0.1.1"}}, {"eth7", {"10.0.7.1"}}});
  EXPECT_THAT(Reload(std::string(kRail0) + kRail2 + "nics { name: 'rail7' interface: 'eth7' }"),
              ElementsAre("nics: new rail7, without rail1"));
  EXPECT_THAT(Nics(), ElementsAre("rail0 10.0.0.1 HEALTHY", "rail2 127.0.0.9 HEALTHY", "rail7 10.0.7.1 HEALTHY"));
  EXPECT_EQ(jobs_->offered().rails, (std::vector<std::string>{"eth0", "127.0.0.9", "eth7"})) << "for jobs without R2CC_RAILS";
  EXPECT_EQ(Weight("n0", "rail7"), 1000);
  EXPECT_FALSE(page_->Find("n0", "rail1").has_value());
  EXPECT_TRUE(net_.IsOpen({"10.0.7.1", 7460}));
  EXPECT_FALSE(net_.IsOpen({"10.0.1.1", 7460}));
  EXPECT_EQ(jobs_->Attach(1, 4711, JobWithRails({"10.0.1.1", "10.0.7.1"})).nics, (std::vector<std::string>{"", "rail7"}));
  links_->Set("eth7", false);
  Settle();
  EXPECT_EQ(Weight("n0", "rail7"), 0);
  links_->Set("eth1", false);
  EXPECT_THAT(Act("n0", "rail1", v1::DRAIN).status().message(), testing::HasSubstr("has no NIC 'rail1'; it has rail0 rail2 rail7"));
}

TEST_F(WiringNicsTest, ASettingIsKeptForANicThatComesAgain) {
  EXPECT_TRUE(Act("n0", "rail1", v1::DRAIN).ok());
  EXPECT_THAT(Reload(std::string(kRail0) + kRail2), ElementsAre("nics: without rail1"));
  EXPECT_THAT(Reload(std::string(kRail0) + kRail1 + kRail2), ElementsAre("nics: new rail1"));
  EXPECT_THAT(Nics(), ElementsAre("rail0 10.0.0.1 HEALTHY", "rail2 127.0.0.9 HEALTHY", "rail1 10.0.1.1 DRAINED"));
  // At another place it is the same name, and so the same word.
  addresses_.Set({{"eth0", {"10.0.0.1"}}, {"eth1", {"10.0.1.1"}}, {"eth7", {"10.0.7.1"}}});
  links_->Set("eth7", true);
  EXPECT_THAT(Reload(std::string(kRail0) + "nics { name: 'rail1' interface: 'eth7' } " + kRail2),
              ElementsAre("nics: another interface or address for rail1"));
  EXPECT_THAT(Nics(), ElementsAre("rail0 10.0.0.1 HEALTHY", "rail2 127.0.0.9 HEALTHY", "rail1 10.0.7.1 DRAINED"));
}

TEST_F(WiringNicsTest, UnchangedNicsAreNotTouched) {
  links_->Set("eth0", false);
  Settle();
  const size_t plans = page_->plans().size();
  EXPECT_THAT(Reload(std::string("nics { name: 'rail0' interface: 'eth0' rate_bits_per_s: 5 } ") + kRail1 + kRail2),
              ElementsAre("rates of NICs: rail0"));
  EXPECT_THAT(Nics(), ElementsAre("rail0 10.0.0.1 FAILED", "rail1 10.0.1.1 HEALTHY", "rail2 127.0.0.9 HEALTHY"));
  EXPECT_LE(page_->plans().size(), plans + 1);
}

TEST_F(WiringNicsTest, ANicThatIsMissingAtTheStartHasFailedUntilItComes) {
  FakeWorld::MakeDaemon(
      "node: 'n0' nics { name: 'rail0' interface: 'eth0' } nics { name: 'rail3' interface: 'eth3' } "
      "nics { name: 'rail4' address: '10.0.4.0/24' } nics { interface: 'ib*' }",
      /*incarnation=*/1001);
  core_.Advance(2000 * kMs);
  Settle();
  EXPECT_THAT(Nics(), ElementsAre("rail0 10.0.0.1 HEALTHY", "rail3  FAILED", "rail4  FAILED"));
  EXPECT_THAT(Status().alarms(),
              testing::UnorderedElementsAre(testing::HasSubstr("NIC rail3 has no interface 'eth3' (test.conf:1)"),
                                            testing::HasSubstr("NIC rail4: this machine has no address in 10.0.4.0/24 (test.conf:1)"),
                                            testing::HasSubstr("no interface of this machine fits 'ib*'")));
  EXPECT_THAT(wiring_->StatusLine(), testing::HasSubstr("no interface of this machine fits 'ib*'")) << "systemctl status shows it";
  // They come, and so does their traffic.
  addresses_.Set({{"eth0", {"10.0.0.1"}}, {"eth3", {"10.0.3.1"}}, {"eth9", {"10.0.4.1"}}, {"ib0", {}}});
  links_->Set("eth3", true, "02:00:00:00:00:03");
  links_->Set("eth9", true, "02:00:00:00:00:09");
  // As the fake of the links numbers them.
  sysfs_.Set("class/net/eth3/ifindex", "3");
  sysfs_.Set("class/net/eth9/ifindex", "4");
  for (int i = 0; i < 20; ++i) {
    core_.Advance(250 * kMs);
    Settle();
  }
  EXPECT_THAT(Nics(), ElementsAre("rail0 10.0.0.1 HEALTHY", "rail3 10.0.3.1 HEALTHY", "rail4 10.0.4.1 HEALTHY"));
  EXPECT_THAT(Status().alarms(), ElementsAre(testing::HasSubstr("an interface that fits 'ib*' is there now: `r2ccctl config reload`")));
}

TEST_F(WiringNicsTest, CertificatesThatEndSoonAreAnAlarm) {
  loader_.SetCertificates({{}, 1'700'000'000 + 5 * 86'400});
  core_.Advance(CertificateWatch::kInterval);
  Settle();
  EXPECT_THAT(Status().alarms(), ElementsAre(testing::HasSubstr("a certificate of this node ends in 4 days")));
  loader_.SetCertificates({{}, 1'700'000'000 + 300 * 86'400});
  core_.Advance(CertificateWatch::kInterval);
  Settle();
  EXPECT_EQ(Status().alarms_size(), 0);
}

}  // namespace
}  // namespace r2cc::daemon
