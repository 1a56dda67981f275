#include "base/transport_reason.h"

#include <gtest/gtest.h>

namespace r2cc {
namespace {

TEST(TransportReason, IsForPeople) {
  EXPECT_EQ(TransportReason("failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: "
                            "Connection refused"),
            "Connection refused");
  EXPECT_EQ(
      TransportReason("DNS resolution failed for n7:7460: C-ares status is not ARES_SUCCESS qtype=A name=n7 is_balancer=0: Domain name "
                      "not found"),
      "the name n7 is not resolved: Domain name not found");
  EXPECT_EQ(TransportReason("C-ares status name="), "the name  is not resolved");
  EXPECT_EQ(TransportReason("the daemon of n1 says no"), "the daemon of n1 says no");
  EXPECT_EQ(TransportReason(""), "");
}

}  // namespace
}  // namespace r2cc
