#include "daemon/peer_words.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "daemon/convert.h"

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
  const std::string range = newest == message.protocol() ? absl::StrCat(newest) : absl::StrCat(message.protocol(), " to ", newest);
  return absl::StrCat("the daemon of ", CleanAbout(message.node()), " (release ", CleanAbout(message.release()), ") speaks protocol ",
                      range, ", this one ", kPeerProtocolLeast, " to ", kPeerProtocol,
                      ": install releases next to each other, and one on all nodes in the end");
}

}  // namespace r2cc::daemon
