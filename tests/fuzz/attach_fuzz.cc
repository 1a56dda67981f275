// Both ends of the attach conversation: the daemon's answer as the plugin reads it, the plugin's request as the daemon does.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/core/check.h"
#include "netplugin/attach/attach_packets.h"
#include "plan/page/attach.h"
#include "plan/page/text.h"
#include "tests/fuzz/input.h"

namespace {

using namespace r2cc;  // NOLINT

void CheckAnswer(fuzz::Input input) {
  const size_t descriptors = input.Below(4);
  const std::span<const uint8_t> packet = input.rest();
  plan::AttachReply reply;
  std::memset(&reply, 0x5a, sizeof(reply));
  const plan::AttachReply untouched = reply;
  const std::string refusal = net::CheckReply(packet.data(), packet.size(), descriptors, &reply);
  R2CC_CHECK(refusal.find('\n') == std::string::npos);
  if (!refusal.empty()) {
    R2CC_CHECK(std::memcmp(&reply, &untouched, sizeof(reply)) == 0);
    return;
  }
  R2CC_CHECK(plan::Valid(reply) && reply.rail_count <= plan::kAttachRailsMax && reply.node[0] != '\0');
  for (const auto& nic : reply.nics) R2CC_CHECK(plan::SoundText(nic));
}

void CheckRequest(fuzz::Input input) {
  plan::AttachRequest request{};
  const std::span<const uint8_t> bytes = input.TakeBytes(sizeof(request));
  if (!bytes.empty()) std::memcpy(&request, bytes.data(), bytes.size());
  if (!plan::Valid(request)) return;
  R2CC_CHECK(request.rail_count <= plan::kAttachRailsMax && strnlen(request.job, sizeof(request.job)) < sizeof(request.job));
}

// Whatever names a system has, the request made of them is one that the daemon takes.
void CheckOwnRequest(fuzz::Input input) {
  std::vector<net::Rail> rails(input.Below(40));
  const std::string job = input.TakeString(80);
  for (net::Rail& rail : rails) {
    rail.name = input.TakeString(30);
    rail.pci = input.TakeString(20);
  }
  R2CC_CHECK(plan::Valid(net::MakeAttachRequest(job, 1, 2, rails, job)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  switch (input.Below(3)) {
    case 0: CheckAnswer(input); break;
    case 1: CheckRequest(input); break;
    default: CheckOwnRequest(input); break;
  }
  return 0;
}
