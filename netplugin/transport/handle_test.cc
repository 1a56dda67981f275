#include "netplugin/transport/handle.h"

#include <gtest/gtest.h>

#include <string>

namespace r2cc::net {
namespace {

Handle HandleWith(const std::string& address) {
  Handle handle;
  std::memset(&handle, 0, sizeof(handle));
  handle.magic = kHandleMagic;
  std::memcpy(handle.oob_address, address.data(), address.size());
  handle.checksum = HandleChecksum(handle);
  return handle;
}

bool IsOurs(const Handle& bytes) {
  Handle handle;
  return ReadHandle(&bytes, &handle);
}

TEST(Handle, RecognisesItsOwnHandles) {
  Handle handle = HandleWith("10.0.0.1");
  EXPECT_TRUE(IsOurs(handle));
  handle.listen_id ^= 1;
  EXPECT_FALSE(IsOurs(handle));
}

TEST(Handle, AnAddressThatIsNoLineIsNotOurs) {
  EXPECT_FALSE(IsOurs(HandleWith("x\n\x1b[31my")));
  EXPECT_FALSE(IsOurs(HandleWith(std::string(sizeof(Handle::oob_address), '1'))));
}

}  // namespace
}  // namespace r2cc::net
