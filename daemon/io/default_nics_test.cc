#include "daemon/io/default_nics.h"

#include <gtest/gtest.h>

#include "health/io/fake_sysfs.h"

namespace r2cc::daemon {
namespace {

using Names = std::vector<std::string>;

class DefaultNicsTest : public testing::Test {
 protected:
  void Add(const std::string& name, const std::string& type, const std::string& device, const std::string& speed,
           const std::vector<std::string>& addresses) {
    const std::string folder = "class/net/" + name;
    sysfs_.Set(folder + "/ifindex", std::to_string(++last_));
    sysfs_.Set(folder + "/type", type);
    if (!device.empty()) sysfs_.Set(folder + "/device", "../../../" + device);
    if (!speed.empty()) sysfs_.Set(folder + "/speed", speed);
    index_[name] = last_;
    addresses_[name] = addresses;
  }
  Names Chosen() {
    return DefaultNics(addresses_, sysfs_, [this](const std::string& name) { return index_[name]; });
  }

  health::FakeSysfs sysfs_;
  Addresses::Map addresses_;
  std::map<std::string, int> index_;
  int last_ = 0;
};

TEST_F(DefaultNicsTest, TakesWhatThePluginTakes) {
  Add("lo", "772", "", "", {"127.0.0.1", "::1"});
  Add("eno1", "1", "0000:01:00.0", "1000", {"192.0.2.1"});
  Add("eth1", "1", "0000:81:00.1", "100000", {"10.0.1.1"});
  Add("eth0", "1", "0000:81:00.0", "100000", {"fe80::1", "10.0.0.1"});
  Add("eth2", "1", "0000:81:00.2", "100000", {"fe80::2"});
  Add("bmc0", "1", "0000:00:14.0", "", {"169.254.3.1"});
  Add("eth3", "1", "0000:81:00.3", "", {"10.0.3.1"});  // down: its speed cannot be read
  Add("docker0", "1", "", "", {"172.17.0.1"});
  EXPECT_EQ(Chosen(), (Names{"eth0", "eth1", "eth3"}));
}

TEST_F(DefaultNicsTest, AnotherNamespacesSysIsNotBelieved) {
  Add("lo", "772", "", "", {"127.0.0.1"});
  Add("eth0", "1", "0000:81:00.0", "1000", {"10.0.0.1"});
  Add("eth1", "1", "0000:81:00.1", "100000", {"10.0.1.1"});
  index_["eth0"] = 99;
  index_["eth1"] = 98;
  index_["lo"] = 97;
  EXPECT_EQ(Chosen(), (Names{"eth0", "eth1"}));
}

}  // namespace
}  // namespace r2cc::daemon
