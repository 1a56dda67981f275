// Shares what the tests of ResolveRails() need: a server, and the two outcomes of a setting of rails.
#ifndef R2CC_NETPLUGIN_RAILS_RAIL_CASES_H_
#define R2CC_NETPLUGIN_RAILS_RAIL_CASES_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "netplugin/rails/fake_host_network.h"
#include "netplugin/rails/rails.h"

namespace r2cc::net {

inline std::vector<Rail> Resolved(const std::string& spec, FakeHostNetwork& host, const std::vector<verbs::PortFacts>& ports = {}) {
  std::vector<Rail> rails;
  std::string error;
  EXPECT_TRUE(ResolveRails(spec, host, ports, &rails, &error)) << error;
  return rails;
}

inline std::string Refused(const std::string& spec, FakeHostNetwork& host, const std::vector<verbs::PortFacts>& ports = {}) {
  std::vector<Rail> rails(1);
  rails[0].name = "untouched";
  std::string error;
  EXPECT_FALSE(ResolveRails(spec, host, ports, &rails, &error)) << spec;
  EXPECT_EQ(rails.size(), 1u);
  EXPECT_EQ(rails[0].name, "untouched");
  EXPECT_EQ(error.find('\n'), std::string::npos);
  return error;
}

inline std::string Names(const std::vector<Rail>& rails) {
  std::string names;
  for (const Rail& rail : rails) names += (names.empty() ? "" : ",") + rail.name;
  return names;
}

// A server: loopback, a management NIC, four rails out of order, docker.
inline FakeHostNetwork Server() {
  FakeHostNetwork host;
  host.Add("lo", {"127.0.0.1", "::1"});
  host.AddNic("eno1", "0000:01:00.0", {"192.168.0.5"}).speed_mbps = 1000;
  host.AddNic("eth3", "0000:c1:00.0", {"10.3.0.1"});
  host.AddNic("eth0", "0000:21:00.0", {"fe80::1", "10.0.0.1"});
  host.AddNic("eth2", "0000:a1:00.0", {"10.2.0.1"});
  host.AddNic("eth1", "0000:41:00.0", {"10.1.0.1"});
  host.Add("docker0", {"172.17.0.1"}).bridge = true;
  host.Add("veth12ab", {"169.254.1.1"});
  return host;
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_RAIL_CASES_H_
