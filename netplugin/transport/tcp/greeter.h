// Everybody who connects to one of our listeners says who he is first; strangers are refused and counted. I/O thread only.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_GREETER_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_GREETER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "netplugin/transport/tcp/io.h"
#include "netplugin/transport/tcp/packet_stream.h"

namespace r2cc::net {

class Greeter {
 public:
  // A stranger's connection is dropped after so long without a greeting.
  static constexpr Nanos kPatience = 5 * kNanosPerSecond;
  // Of so many strangers the one who has waited longest makes room for the next.
  static constexpr size_t kWaitingMax = 128;

  // Decides on a sound greeting. If it accepts, it keeps the stream and has already sent the reply; if it refuses, the greeter sends the
  // returned reply and hangs up.
  using OnHello = std::function<HelloReply(const Hello&, std::unique_ptr<PacketStream>*)>;
  Greeter(Io* io, OnHello on_hello) : io_(io), on_hello_(std::move(on_hello)) {}
  ~Greeter();

  void AddListener(UniqueFd listener);
  void Tick(Nanos now);

  uint64_t refused() const { return refused_; }

 private:
  struct Waiting {
    std::unique_ptr<PacketStream> stream;
    Poller::Token token = 0;
    Nanos since = 0;
  };
  struct Listener {
    UniqueFd fd;
    Poller::Token token = 0;
    bool paused = false;  // the process has no descriptor left: not before the next tick
  };

  void AcceptAll(size_t listener);
  void Readable(uint64_t id);
  void Drop(uint64_t id);

  Io* const io_;
  const OnHello on_hello_;
  std::vector<Listener> listeners_;
  std::map<uint64_t, Waiting> waiting_;
  uint64_t next_id_ = 1;
  uint64_t refused_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_GREETER_H_
