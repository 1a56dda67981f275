// Apart from socket.cc because the kernel's header and the C library's define the same names.
#include <linux/tcp.h>
#include <netinet/in.h>

#include <algorithm>

#include "netplugin/transport/tcp/socket.h"

namespace r2cc::net {

TcpStats StatsOf(int fd) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  // While the peer's window is closed the peer is slow, not the rail.
  const uint64_t busy_us = info.tcpi_busy_time - std::min(info.tcpi_busy_time, info.tcpi_rwnd_limited);
  return {info.tcpi_bytes_acked, static_cast<int64_t>(busy_us) * 1000, int64_t{info.tcpi_min_rtt} * 1000};
}

}  // namespace r2cc::net
