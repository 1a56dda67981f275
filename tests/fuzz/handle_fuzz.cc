// The 128 bytes that NCCL carries from another rank.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/core/check.h"
#include "netplugin/link/frame.h"
#include "netplugin/transport/handle.h"
#include "netplugin/transport/tcp/socket.h"
#include "tests/fuzz/input.h"

namespace {

using namespace r2cc;       // NOLINT
using namespace r2cc::net;  // NOLINT

void Check(const uint8_t (&bytes)[128]) {
  Handle handle;
  if (!ReadHandle(bytes, &handle)) return;
  const uint32_t version = NegotiateVersion(handle.wire_least, handle.wire_newest);
  R2CC_CHECK(version == 0 || (version >= kWireVersionLeast && version <= kWireVersion && version >= handle.wire_least));
  SocketAddress address;
  if (!ParseAddress(handle.oob_address, handle.oob_port, &address)) return;
  R2CC_CHECK(address.port() == handle.oob_port);
  // The address as text is the same address.
  SocketAddress again;
  R2CC_CHECK(ParseAddress(address.Text(), handle.oob_port, &again));
  R2CC_CHECK(again.length == address.length && std::memcmp(&again.storage, &address.storage, again.length) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const bool sealed = input.TakeBool();
  uint8_t bytes[128] = {};
  const std::span<const uint8_t> rest = input.TakeBytes(sizeof(bytes));
  if (!rest.empty()) std::memcpy(bytes, rest.data(), rest.size());
  if (sealed) {
    Handle handle;
    std::memcpy(&handle, bytes, sizeof(handle));
    handle.magic = kHandleMagic;
    handle.checksum = HandleChecksum(handle);
    std::memcpy(bytes, &handle, sizeof(handle));
  }
  Check(bytes);
  return 0;
}
