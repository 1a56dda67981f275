// Describes other daemons for people. Pure.
#ifndef R2CC_DAEMON_PEERS_PEER_TEXTS_H_
#define R2CC_DAEMON_PEERS_PEER_TEXTS_H_

#include <string>

#include "daemon/core/speaker.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Cut and printable.
std::string CleanAbout(const std::string& text);
// The place of a daemon: its own address, and the way of its messages if that is another one.
std::string Where(const std::string& peer_address, const Speaker& from);
// Why this view cannot be understood; empty: it can.
std::string ForeignProtocol(const v1::NodeView& message);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PEERS_PEER_TEXTS_H_
