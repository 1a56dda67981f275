// Datagrams of NETLINK_ROUTE: the kernel is trusted, its version is not.
#include <cstddef>
#include <cstdint>

#include "base/core/check.h"
#include "base/core/netlink.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  r2cc::fuzz::Input input(data, size);
  const uint32_t sequence = input.Take<uint8_t>();
  r2cc::NetlinkBatch batch;
  r2cc::ParseNetlink(input.rest().data(), input.rest().size(), sequence, &batch);
  for (const r2cc::NetEvent& event : batch.events) {
    R2CC_CHECK(event.kind != r2cc::NetEvent::Kind::kResync && event.kind != r2cc::NetEvent::Kind::kDumpDone);
    R2CC_CHECK(event.ifindex > 0 && event.name.size() < 16);
    const bool address = event.kind == r2cc::NetEvent::Kind::kAddressAdded || event.kind == r2cc::NetEvent::Kind::kAddressRemoved;
    R2CC_CHECK(address != event.address.empty());
  }
  return 0;
}
