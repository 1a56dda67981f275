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
  // The texts of gRPC 1.51 and OpenSSL 3.0.
  EXPECT_EQ(TransportReason("failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:7999: Tls handshake failed: "
                            "SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong version number"),
            "it does not use TLS: it is another program, or a daemon without tls");
  EXPECT_EQ(TransportReason("failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:7998: Cannot check peer: missing "
                            "selected ALPN property."),
            "it uses TLS, but it is no r2ccd");
  EXPECT_EQ(TransportReason("failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.2:7460: Tls handshake failed: "
                            "SSL_ERROR_SSL: error:0A000418:SSL routines::tlsv1 alert unknown ca"),
            "it refuses the certificate of this end: another authority issued it");
  for (const char* end : {"UNAVAILABLE: unix:r2ccd.sock: Broken pipe", "UNAVAILABLE: ipv4:127.0.0.1:1: Socket closed",
                          "UNKNOWN: ipv6:%5B::1%5D:1: tcp handshaker shutdown"})
    EXPECT_EQ(TransportReason(std::string("failed to connect to all addresses; last error: ") + end),
              "the connection ended: the daemon stopped, or starts again")
        << end;
  EXPECT_EQ(TransportReason("failed to connect to all addresses; last error: INTERNAL: unix:r2ccd.sock: Trying to connect an http1.x "
                            "server"),
            "it speaks HTTP/1: it is another program");
  EXPECT_EQ(TransportReason("failed to connect to all addresses; last error: UNKNOWN: unix:r2ccd.sock: connection attempt timed out before "
                            "receiving SETTINGS frame"),
            "it accepts connections and does not answer: it is stopped, or another program");
  EXPECT_EQ(TransportReason("Received message larger than max (6758817 vs. 4194304)"),
            "its answer is too long for this program: ask for a part of it");
  EXPECT_EQ(TransportReason("NIC: rail0: no"), "NIC: rail0: no") << "a daemon's own sentence";
  EXPECT_EQ(TransportReason("Socket closed"), "the connection ended: the daemon stopped, or starts again");
  EXPECT_EQ(TransportReason("node n1 cannot be reached: Socket closed"), "node n1 cannot be reached: Socket closed");
  EXPECT_EQ(TransportReason("the daemon of n1 says no"), "the daemon of n1 says no");
  EXPECT_EQ(TransportReason(""), "");
}

}  // namespace
}  // namespace r2cc
