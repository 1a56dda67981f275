#include "daemon/config/config_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const std::map<std::string, std::vector<std::string>> kMachine = {{"lo", {"127.0.0.1", "::1"}},
                                                                  {"eth0", {"10.9.0.7", "fd00::7"}},
                                                                  {"eth1", {"10.1.0.7"}},
                                                                  {"eth2", {"10.2.0.7", "fe80::1"}},
                                                                  {"mgmt", {}}};

absl::StatusOr<Config> Fit(const std::string& text) {
  auto config = ParseConfig("insecure: true\n" + text, "f.conf", {"/run", "n0", "", "/lib"});
  if (!config.ok()) return config;
  if (absl::Status status = FitToMachine(kMachine, &*config); !status.ok()) return status;
  return config;
}

// NAME=INTERFACE,ADDRESS,RATE of each NIC; the error if there is one.
std::vector<std::string> Nics(const std::string& text) {
  const auto config = Fit(text);
  if (!config.ok()) return {std::string(config.status().message())};
  std::vector<std::string> nics;
  for (const NicSpec& nic : config->nics)
    nics.push_back(nic.name + "=" + nic.interface + "," + nic.address + "," + std::to_string(nic.rate_bits_per_s));
  return nics;
}

TEST(ConfigPatternsTest, WithoutPatternsNothingChanges) {
  EXPECT_THAT(Nics("nics { name: \"r\" interface: \"eth7\" }"), ElementsAre("r=eth7,,0"));
}

TEST(ConfigPatternsTest, InterfacesByPatternAreNamedAsTheyAre) {
  EXPECT_THAT(Nics("nics { interface: \"eth*\" rate_bits_per_s: 5 }"), ElementsAre("eth0=eth0,,5", "eth1=eth1,,5", "eth2=eth2,,5"));
  EXPECT_THAT(Nics("nics { interface: \"eth?\" } nics { name: \"rail0\" interface: \"eth1\" }"),
              ElementsAre("rail0=eth1,,0", "eth0=eth0,,0", "eth2=eth2,,0"))
      << "one that has a name keeps it";
  EXPECT_THAT(Nics("nics { interface: \"*\" }"), testing::Not(testing::Contains(StartsWith("lo"))));
}

TEST(ConfigPatternsTest, ANicByItsNetworkHasOneNameOnAllMachines) {
  EXPECT_THAT(Nics("nics { name: \"rail0\" address: \"10.1.0.0/16\" } nics { name: \"rail1\" address: \"10.2.0.0/16\" }"),
              ElementsAre("rail0=eth1,10.1.0.7,0", "rail1=eth2,10.2.0.7,0"));
  EXPECT_THAT(Nics("nics { name: \"v6\" address: \"fd00::/64\" }"), ElementsAre("v6=eth0,fd00::7,0"));
  EXPECT_THAT(Nics("nics { name: \"l\" address: \"127.0.0.0/8\" }"), ElementsAre("l=,127.0.0.1,0")) << "not the whole loopback";
}

TEST(ConfigPatternsTest, TheAddressToListenAtByItsNetwork) {
  EXPECT_EQ(Fit("listen: \"10.9.0.0/16:7460\"")->listen, "10.9.0.7:7460");
  EXPECT_EQ(Fit("listen: \"[fd00::/64]:7461\"")->listen, "[fd00::7]:7461");
  EXPECT_EQ(Fit("listen: \"[fd00::]/64:7461\"")->listen, "[fd00::7]:7461");
  EXPECT_THAT(
      std::string(Fit("listen: \"10.77.0.0/16:7460\"").status().message()),
      StartsWith("f.conf:2: listen: this machine has no address in 10.77.0.0/16; it has 10.9.0.7 (eth0) fd00::7 (eth0) 10.1.0.7 (eth1)"));
  EXPECT_THAT(std::string(Fit("listen: \"10.9.0.0/77:7460\"").status().message()), HasSubstr("the number of bits is expected, 0 to 32"));
  const auto closed = ParseConfig("listen: \"10.9.0.0/16:7460\"", "f.conf", {"/run", "n0", "", "/lib"});
  EXPECT_THAT(std::string(closed.status().message()), HasSubstr("10.9.0.0/16 needs tls"));
}

TEST(ConfigPatternsTest, ByDefaultItListensForBothFamiliesThatTheMachineHas) {
  const auto by_default = [](const std::map<std::string, std::vector<std::string>>& machine) {
    auto config = ParseConfig("insecure: true", "f.conf", {"/run", "n0", "", "/lib"});
    EXPECT_TRUE(FitToMachine(machine, &*config).ok());
    return config->listen;
  };
  EXPECT_EQ(by_default({{"lo", {"127.0.0.1", "::1"}}, {"eth0", {"fd00::7"}}}), "[::]:7460");
  EXPECT_EQ(by_default({{"lo", {"127.0.0.1"}}, {"eth0", {"10.9.0.7"}}}), "0.0.0.0:7460");
  EXPECT_EQ(Fit("listen: \"0.0.0.0:7460\"")->listen, "0.0.0.0:7460") << "the file's value stays";
}

TEST(ConfigPatternsTest, AMachineMayLackWhatItHasInForce) {
  auto config = ParseConfig(
      "insecure: true nics { name: 'r0' address: '10.1.0.0/16' } nics { name: 'r7' address: '10.7.0.0/16' "
      "rate_bits_per_s: 5 } nics { interface: 'ib*' }",
      "f.conf", {"/run", "n0", "", "/lib"});
  ASSERT_TRUE(config.ok());
  Config whole = *config;
  EXPECT_THAT(std::string(FitToMachine(kMachine, &whole).message()), HasSubstr("NIC r7: this machine has no address in 10.7.0.0/16"));
  whole = *config;
  EXPECT_FALSE(FitToMachine(kMachine, &whole, MayLack{.names = {"r7"}}).ok());
  whole = *config;
  ASSERT_TRUE(FitToMachine(kMachine, &whole, MayLack{.names = {"r7", "ib*"}}).ok());
  whole = *config;
  ASSERT_TRUE(FitToMachine(kMachine, &whole, MayLack{.everything = true}).ok());
  ASSERT_EQ(whole.nics.size(), 2u);
  EXPECT_EQ(whole.nics[0].interface, "eth1");
  EXPECT_EQ(whole.nics[1].name, "r7");
  EXPECT_EQ(whole.nics[1].interface, "in 10.7.0.0/16") << "no interface has such a name";
  EXPECT_EQ(whole.nics[1].address, "");
  EXPECT_EQ(whole.nics[1].rate_bits_per_s, 5u);
  EXPECT_THAT(whole.lacking_globs, ElementsAre("ib*"));
}

TEST(ConfigPatternsTest, AMismatchIsReportedWithWhatExists) {
  EXPECT_THAT(Nics("\nnics { interface: \"ib*\" }"),
              ElementsAre("f.conf:3: no interface of this machine fits 'ib*'; it has eth0 eth1 eth2 mgmt"));
  EXPECT_THAT(Nics("nics { name: \"r\" address: \"10.0.0.0/8\" }"),
              ElementsAre(HasSubstr("NIC r: this machine has more than one address in 10.0.0.0/8: 10.9.0.7 (eth0) 10.1.0.7 (eth1)")));
  EXPECT_THAT(Nics("nics { name: \"r\" address: \"10.1.0.0/x\" }"), ElementsAre(HasSubstr("the number of bits is expected")));
  EXPECT_THAT(Nics("nics { name: \"r\" address: \"rail/16\" }"), ElementsAre(HasSubstr("no numeric address")));
  EXPECT_THAT(Nics("nics { name: \"a\" interface: \"eth1\" } nics { name: \"b\" address: \"10.1.0.0/16\" }"),
              ElementsAre(HasSubstr("NIC b: 10.1.0.7 is another NIC's already")));
  EXPECT_THAT(Nics("nics { name: \"eth2\" interface: \"eth1\" } nics { interface: \"eth2*\" }"),
              ElementsAre(HasSubstr("interface 'eth2' fits eth2*, and its name is another NIC's")));
  EXPECT_THAT(Nics("nics { name: \"r\" interface: \"eth*\" }"), ElementsAre(HasSubstr("names NICs by their interfaces: it has no name")));
  EXPECT_THAT(Nics("nics { name: \"r\" interface: \"eth1\" address: \"10.1.0.0/16\" }"),
              ElementsAre(HasSubstr("only a name and a rate are possible")));
  EXPECT_THAT(Nics("limits { nics_per_node: 2 } nics { interface: \"eth*\" }"),
              ElementsAre(HasSubstr("3 NICs fit, and more than 2 are refused")));
}

TEST(NetworkTest, BitsThatCount) {
  const auto contains = [](const char* network, const std::string& address) { return Network::Parse(network)->Contains(address); };
  EXPECT_TRUE(contains("10.1.2.0/23", "10.1.3.255"));
  EXPECT_FALSE(contains("10.1.2.0/23", "10.1.4.0"));
  EXPECT_TRUE(contains("0.0.0.0/0", "255.1.2.3"));
  EXPECT_FALSE(contains("0.0.0.0/0", "::1"));
  EXPECT_TRUE(contains("10.1.2.3/32", "10.1.2.3"));
  EXPECT_FALSE(contains("10.1.2.3/32", "10.1.2.2"));
  EXPECT_TRUE(contains("fd00:1::/33", "fd00:1:7fff::1"));
  EXPECT_FALSE(contains("fd00:1::/33", "fd00:1:8000::1"));
  EXPECT_FALSE(contains("10.0.0.0/8", "no address"));
}

}  // namespace
}  // namespace r2cc::daemon
