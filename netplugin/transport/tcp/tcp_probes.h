// Makes the connections of Probes over TCP, for the whole process, in the I/O thread's poller.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_PROBES_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_PROBES_H_

#include <cstdint>
#include <map>
#include <optional>

#include "base/core/clock.h"
#include "base/core/mutex.h"
#include "netplugin/transport/os/poller.h"
#include "netplugin/transport/probes.h"
#include "netplugin/transport/tcp/descriptors.h"
#include "netplugin/transport/tcp/socket.h"

namespace r2cc::net {

class TcpProbes {
 public:
  // `source`: of the out-of-band connections. It and `descriptors` live as long as this.
  TcpProbes(Poller* poller, const Clock* clock, const Source* source, DescriptorWatch* descriptors)
      : poller_(poller), clock_(clock), source_(source), descriptors_(descriptors) {}
  ~TcpProbes();
  TcpProbes(const TcpProbes&) = delete;
  TcpProbes& operator=(const TcpProbes&) = delete;

  // ---- any thread: see Probes ----

  void Ask(const OobAddress& peer, const Probes::Question& question);
  std::optional<ProbeResult> AnswerTo(const OobAddress& peer, const Probes::Question& question) const;

  // ---- the I/O thread ----

  // Call every few milliseconds: begins the probes that were requested since the last call.
  void Tick(Nanos now);

 private:
  struct Open {
    UniqueFd fd;
    Poller::Token token = 0;
  };
  void Connect(uint64_t connection, const OobAddress& peer);
  void Close(uint64_t connection);
  void Connected(uint64_t connection);
  void End(uint64_t connection, ProbeResult result);

  Poller* const poller_;
  const Clock* const clock_;
  const Source* const source_;
  DescriptorWatch* const descriptors_;
  std::map<uint64_t, Open> open_;  // I/O thread
  mutable Mutex mutex_;
  Probes probes_ R2CC_GUARDED_BY(mutex_);
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_PROBES_H_
