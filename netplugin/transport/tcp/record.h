// What became of links, for the daemon and the log.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_RECORD_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_RECORD_H_

#include <algorithm>
#include <cstring>
#include <string>

#include "netplugin/link/action.h"
#include "netplugin/transport/tcp/io.h"

namespace r2cc::net {

inline void CopyText(const std::string& text, char* out, size_t size) {
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
}

struct LinkEnds {
  uint16_t local_rail = 0;
  std::string peer_node;
  std::string peer_nic;
};

// kLinkUp, kLinkFenced, kLinkSlow.
void RecordUp(Io* io, const Action& action, const LinkEnds& ends);
void RecordFenced(Io* io, const Action& action, const LinkEnds& ends);
void RecordSlow(Io* io, const Action& action, const LinkEnds& ends);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_RECORD_H_
