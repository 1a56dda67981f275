#include "daemon/peers/peer_texts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/core/version_range.h"
#include "base/names.h"
#include "daemon/core/convert.h"

namespace r2cc::daemon {
namespace {

constexpr size_t kAboutBytesMax = 256;

}  // namespace

std::string CleanAbout(const std::string& text) { return CleanText(text.data(), std::min(text.size(), kAboutBytesMax)); }

std::string Where(const std::string& peer_address, const Speaker& from) {
  const std::string address = CleanAbout(peer_address);
  return from.from.empty() || from.from == address ? address : absl::StrCat(address, " (heard from ", from.from, ")");
}

std::string ForeignProtocol(const v1::NodeView& message) {
  const uint32_t newest = std::max(message.protocol(), message.protocol_newest());
  if (message.protocol() <= kPeerProtocol && newest >= kPeerProtocolLeast) return "";
  return absl::StrCat("the daemon of ", CleanAbout(message.node()), " (release ", CleanAbout(message.release()), ") speaks protocol ",
                      VersionRange(message.protocol(), newest), ", this one ", VersionRange(kPeerProtocolLeast, kPeerProtocol),
                      ": install releases next to each other, and one on all nodes in the end");
}

}  // namespace r2cc::daemon
