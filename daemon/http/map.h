// The cluster as the page at / shows it. Pure.
#ifndef R2CC_DAEMON_HTTP_MAP_H_
#define R2CC_DAEMON_HTTP_MAP_H_

#include "proto/map.pb.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// `asked`: the status of the daemon that was asked. The map of 1,000 nodes of 8 NICs has 150 kB as JSON, and their views have 7 MB.
v1::ClusterMap MapOf(const v1::ListNicsReply& nics, const v1::StatusReply& asked);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_MAP_H_
