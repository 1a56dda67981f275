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
  if (message.protocol() == kPeerProtocol) return "";
  return absl::StrCat("the daemon of ", CleanAbout(message.node()), " (release ", CleanAbout(message.release()), ") speaks protocol ",
                      message.protocol(), ", this one ", kPeerProtocol, ": install one release of r2ccd on all nodes");
}

}  // namespace r2cc::daemon
