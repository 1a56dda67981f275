#include "netplugin/attach/attach_packets.h"

#include <algorithm>
#include <cstring>

#include "base/core/version_range.h"
#include "plan/page/text.h"

namespace r2cc::net {
namespace {

constexpr size_t kDescriptors = 2;  // page, ring

// The beginning that every version of the reply has.
struct ReplyHeader {
  uint32_t magic;
  uint32_t version;
};

}  // namespace

plan::AttachRequest MakeAttachRequest(const std::string& job, int pid, uint64_t process_id, const std::vector<Rail>& rails,
                                      const std::string& release) {
  plan::AttachRequest request{};
  request.magic = plan::kAttachMagic;
  request.version = plan::kAttachVersion;
  request.pid = pid;
  request.process_id = process_id;
  request.rail_count = static_cast<uint32_t>(std::min<size_t>(rails.size(), plan::kAttachRailsMax));
  plan::SetText(job, request.job);
  plan::SetText(release, request.release);
  for (uint32_t i = 0; i < request.rail_count; ++i) {
    const Rail& rail = rails[i];
    plan::AttachRail& to = request.rails[i];
    plan::SetText(rail.name, to.name);
    plan::SetText(rail.address.text, to.address);
    plan::SetText(rail.pci, to.pci);
    to.guid = rail.guid;
    std::copy(rail.mac.begin(), rail.mac.end(), to.mac);
    to.netns_inode = rail.netns_inode;
  }
  return request;
}

std::string CheckReply(const void* packet, size_t bytes, size_t descriptors, plan::AttachReply* reply) {
  ReplyHeader header{};
  if (bytes >= sizeof(header)) std::memcpy(&header, packet, sizeof(header));
  if (header.magic != plan::kAttachMagic) return "its answer is garbled: is that r2ccd's attach socket?";
  if (!plan::IsAttachVersion(header.version))
    return "it uses attach version " + std::to_string(header.version) + ", this plugin " +
           VersionRange(plan::kAttachVersionLeast, plan::kAttachVersion) + ": upgrade r2ccd or the plugin";
  plan::AttachReply candidate{};
  if (bytes != sizeof(candidate))
    return "its answer has " + std::to_string(bytes) + " bytes instead of " + std::to_string(sizeof(candidate));
  std::memcpy(&candidate, packet, sizeof(candidate));
  if (!Valid(candidate)) return "its answer is garbled: is that r2ccd's attach socket?";
  if (candidate.status != static_cast<uint32_t>(plan::AttachStatus::kAccepted))
    return std::string("it refused: ") + (candidate.reason[0] == '\0' ? "no reason given" : candidate.reason);
  if (descriptors != kDescriptors) return "it sent " + std::to_string(descriptors) + " descriptors instead of page and ring";
  if (candidate.node[0] == '\0') return "it did not send the name of this node";
  for (uint32_t i = candidate.rail_count; i < plan::kAttachRailsMax; ++i) plan::SetText("", candidate.nics[i]);
  *reply = candidate;
  return "";
}

uint32_t VersionToAskIn(const void* packet, size_t bytes, uint32_t asked) {
  plan::AttachReply reply{};
  if (bytes != sizeof(reply)) return 0;
  std::memcpy(&reply, packet, sizeof(reply));
  const bool wants = Valid(reply) && reply.status == static_cast<uint32_t>(plan::AttachStatus::kWrongVersion);
  return wants && plan::IsAttachVersion(reply.version) && reply.version < asked ? reply.version : 0;
}

}  // namespace r2cc::net
