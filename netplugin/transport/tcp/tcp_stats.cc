// Apart from socket.cc because the kernel's header and the C library's define the same names.
#include <linux/tcp.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>

#include "netplugin/transport/tcp/socket.h"

namespace r2cc::net {
namespace {

// TCP_SYN_SENT of the kernel's own enumeration, which netinet/tcp.h has and linux/tcp.h lacks.
constexpr uint8_t kSynSent = 2;

}  // namespace

TcpStats StatsOf(int fd) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  TcpStats stats{.delivered_bytes = info.tcpi_bytes_acked, .round_trip_ns = int64_t{info.tcpi_min_rtt} * 1000};
  // While the peer's window is closed the peer is slow, not the rail.
  stats.busy_ns = static_cast<int64_t>(info.tcpi_busy_time - std::min(info.tcpi_busy_time, info.tcpi_rwnd_limited)) * 1000;
  stats.unsent = info.tcpi_notsent_bytes > 0;
  // Probes of a closed window are answered as long as the path is sound, and count only until then.
  const bool unanswered_probes = info.tcpi_probes > 0;
  stats.unacknowledged = info.tcpi_unacked > 0 || unanswered_probes;
  // Kernels before 5.4 do not say. There a peer that shrinks its window below what is on its way looks like a stall.
  const bool window_known = length >= offsetof(tcp_info, tcpi_snd_wnd) + sizeof(info.tcpi_snd_wnd);
  stats.window_open = !window_known || info.tcpi_snd_wnd > 0 || unanswered_probes || info.tcpi_state == kSynSent;
  // The kernel counts a timeout here only if the retransmission left this host.
  stats.timeouts = info.tcpi_backoff;
  stats.packet_bytes = info.tcpi_pmtu;
  stats.packet_header_bytes = info.tcpi_pmtu - std::min(info.tcpi_pmtu, info.tcpi_snd_mss);
  return stats;
}

}  // namespace r2cc::net
