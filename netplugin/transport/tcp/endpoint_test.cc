#include "netplugin/transport/tcp/endpoint.h"

#include <gtest/gtest.h>

namespace r2cc::net {
namespace {

TEST(TcpEndpoint, ARailComesBackAsItWas) {
  for (const char* const text : {"10.1.2.3", "fd00::5"}) {
    SocketAddress address;
    ASSERT_TRUE(ParseAddress(text, 5000, &address));
    const auto back = AddressOf(RailEndpointOf(address));
    ASSERT_TRUE(back.has_value()) << text;
    EXPECT_EQ(back->Text(), text);
    EXPECT_EQ(back->port(), 5000);
  }
}

TEST(TcpEndpoint, AnInvalidAddressIsRefused) {
  EXPECT_FALSE(AddressOf({}).has_value());
  EXPECT_FALSE(AddressOf({1, 2}).has_value());
  EXPECT_FALSE(AddressOf({1, 2, 'x', 0, 'y'}).has_value());
}

TEST(TcpEndpoint, APathComesBackAsItWas) {
  const auto path = PathOf(PathEndpointOf({.control = false, .socket = 3, .sockets = 4}));
  ASSERT_TRUE(path.has_value());
  EXPECT_FALSE(path->control);
  EXPECT_EQ(path->socket, 3);
  EXPECT_EQ(path->sockets, 4);
  EXPECT_TRUE(PathOf(PathEndpointOf({.control = true, .sockets = 4}))->control);
}

TEST(TcpEndpoint, APathThatCannotBeIsRefused) {
  EXPECT_FALSE(PathOf({}).has_value());
  EXPECT_FALSE(PathOf({2, 0, 1}).has_value());
  EXPECT_FALSE(PathOf({0, 0, 0}).has_value());
  EXPECT_FALSE(PathOf({0, 4, 4}).has_value());
  EXPECT_FALSE(PathOf({0, 0, 1, 0}).has_value());
}

}  // namespace
}  // namespace r2cc::net
