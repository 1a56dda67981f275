// The simulated network: hosts with rails and an out-of-band port, and connections between them that behave as TCP's do in a Linux
// kernel, as far as a process can tell. Virtual time; one thread.
//
// What is modelled: delay, jitter and rate of each directed path; a bounded send and receive buffer, so that a writer feels room and
// its end; order inside a connection and none between connections; retransmission with back-off while a path is blocked (nothing is
// lost by silence alone, only late); a reset that travels unreliably and takes unread bytes along; connect that is refused, unanswered,
// or answered by the kernel alone; the queue of connections that the kernel has made and the process has not accepted, which is full of
// those of a stopped process sooner or later; keep-alive and user time-out of out-of-band connections; a process's end with and without a
// forked child that keeps its descriptors.
#ifndef R2CC_TESTS_SIM_NETWORK_H_
#define R2CC_TESTS_SIM_NETWORK_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/sim/socket.h"
#include "tests/sim/timeline.h"

namespace r2cc::sim {

struct PathOptions {
  Nanos delay = 20'000;
  Nanos jitter = 0;  // up to so much more, packet by packet
  int64_t rate_bytes_per_s = 400'000'000;
  bool reachable = true;  // false: the fabric does not join these ports
};

class Network {
 public:
  // A process's own end of the network.
  class Host {
   public:
    virtual ~Host() = default;
    // A connection waits for Accept().
    virtual void Arrived(Port local) = 0;
  };

  // As Linux's least retransmission timeout, which doubles with each.
  static constexpr Nanos kRetransmitLeast = 200 * kNanosPerMs;

  explicit Network(Timeline* timeline) : timeline_(timeline) {}
  Timeline* timeline() { return timeline_; }

  // Process k is on node k modulo `nodes`, and one after the other has the node's ports: it connects and listens at their addresses.
  void set_nodes(int nodes) { nodes_ = nodes; }
  int NodeOf(int host) const { return nodes_ == 0 || host < 0 ? host : host % nodes_; }
  // The process of a node of which `host` is a sibling: they began together.
  int SiblingOn(int node, int host) const { return NodeOf(node) + host - NodeOf(host); }
  // It takes the place of the one that was there before, which is dead.
  void AddHost(int host, Host* handler) { hosts_[NodeOf(host)] = {handler, false}; }
  void SetPath(Port from, Port to, const PathOptions& options) { PathOf(from, to).options = options; }
  void set_send_buffer_bytes(size_t bytes) { send_buffer_bytes_ = bytes; }
  void set_receive_buffer_bytes(size_t bytes) { receive_buffer_bytes_ = bytes; }
  // So many connections wait on a port; further attempts stay without an answer. What was reset meanwhile keeps its place.
  void set_backlog(size_t connections) { backlog_ = connections; }

  // `keep_alive`: with the time-outs of an out-of-band connection.
  std::shared_ptr<Socket> Connect(Port from, Port to, bool keep_alive);
  // The one that has waited longest; null: none.
  std::shared_ptr<Socket> Accept(Port local);
  size_t Waiting(Port local) { return At(local).waiting.size(); }

  // ---- faults; each Block is undone by one Unblock ----

  void Block(Port from, Port to) { ++PathOf(from, to).blocked; }
  void Unblock(Port from, Port to) { --PathOf(from, to).blocked; }
  void BlockPort(Port port) { ++At(port).blocked; }
  void UnblockPort(Port port) { --At(port).blocked; }
  // Packets between the ports wait until then, and are not lost.
  void Hold(Port from, Port to, Nanos until) {
    Path& path = PathOf(from, to);
    path.held_until = std::max(path.held_until, until);  // what leaves later does not overtake
  }
  // All paths of the port run at 1/divisor of their rate.
  void Slow(Port port, int divisor) { At(port).divisor = divisor; }
  // Resets what is connected between the ports; `ends`: 1 the first port's end, 2 the second's, 3 both.
  void Reset(Port a, Port b, int ends);
  // The port has another address from now on: connections to and from the old one go silent, and are never heard of again.
  void Renumber(Port port);
  // Of what `from` sends to `to` by one of their connections, chosen by `choice`, so much is lost from now on, as by a sick member of a
  // LAG: other connections take other members. False: there is none.
  bool LosePackets(Port from, Port to, int choice, int lost_permille);
  // From `from` to `to` large packets are lost; undone by one UnblockLarge().
  void BlockLarge(Port from, Port to) { ++PathOf(from, to).large_blocked; }
  void UnblockLarge(Port from, Port to) { --PathOf(from, to).large_blocked; }
  bool LosesLarge(Port from, Port to) const { return Look(from, to).large_blocked > 0; }
  static constexpr size_t kSmallPacketBytes = 1400;
  uint8_t generation(Port port) { return At(port).generation; }
  void Refuse(Port port, bool on) { At(port).refuses = on; }
  // The kernel answers connects, the process never hears of them.
  void Swallow(Port port, bool on) { At(port).swallows = on; }
  // Nobody listens on the host any more. `holds_sockets`: a forked child keeps the connections open and reads nothing.
  void KillHost(int host, bool holds_sockets);

  // True if a packet would cross at this moment.
  bool Passes(Port from, Port to) const;
  // What crosses in a second at this moment; 0: nothing, or no answer to it.
  int64_t BytesPerS(Port from, Port to) { return Passes(from, to) && Passes(to, from) ? Rate(from, to) : 0; }
  // How long a packet is under way, jitter and what holds it up left out; and until when it is held up.
  Nanos Delay(Port from, Port to) const { return Look(from, to).options.delay; }
  Nanos HeldUntil(Port from, Port to) const { return Look(from, to).held_until; }
  bool Dead(int host) { return hosts_[NodeOf(host)].dead; }
  bool Joined(Port from, Port to) { return PathOf(from, to).options.reachable; }

 private:
  friend class Socket;
  friend class Connection;
  struct Path {
    PathOptions options;
    int blocked = 0;
    int large_blocked = 0;
    Nanos held_until = 0;
    Nanos free_at = 0;
  };
  struct PortState {
    int blocked = 0;
    int divisor = 1;
    bool refuses = false;
    bool swallows = false;
    uint8_t generation = 0;
    std::deque<std::shared_ptr<Connection>> waiting;
  };
  struct HostState {
    Host* handler = nullptr;
    bool dead = false;
  };

  Port OnNode(Port port) const { return {NodeOf(port.host), port.rail}; }
  bool IsAt(Port port, Port place) const { return OnNode(port) == OnNode(place); }
  PortState& At(Port port) { return ports_[OnNode(port)]; }
  Path& PathOf(Port from, Port to) { return paths_[{OnNode(from), OnNode(to)}]; }
  // The same, and a path that nobody has spoken of is not kept.
  const Path& Look(Port from, Port to) const;
  bool IsBlocked(Port port) const;
  int64_t Rate(Port from, Port to);
  Nanos Latency(Port from, Port to);
  // A packet of the connection, sent by that side, would cross at this moment.
  bool Crosses(const Connection& connection, int side, size_t bytes);
  // A probe of a closed window would be answered.
  bool Answers(const Connection& connection);
  void Syn(std::shared_ptr<Connection> connection, Nanos again_after);
  void Answer(std::shared_ptr<Connection> connection, bool refused, Nanos again_after);
  void Transmit(const std::shared_ptr<Connection>& connection, int side);
  void Arrive(const std::shared_ptr<Connection>& connection, int side);
  void Acknowledge(std::shared_ptr<Connection> connection, int side, size_t bytes, Nanos again_after);
  // `until_received`: it answers bytes, which the other end sends again until a reset reaches it.
  void SendReset(const std::shared_ptr<Connection>& connection, int side, bool until_received = false);
  void Break(const std::shared_ptr<Connection>& connection, int side, bool refused);
  void KeepAlive(std::shared_ptr<Connection> connection);
  void Signal(const std::shared_ptr<Connection>& connection, int side);

  Timeline* const timeline_;
  std::map<std::pair<Port, Port>, Path> paths_;
  std::map<Port, PortState> ports_;
  std::map<int, HostState> hosts_;  // by node
  int nodes_ = 0;                   // 0: as many as processes
  std::vector<std::weak_ptr<Connection>> connections_;
  size_t send_buffer_bytes_ = 32 * 1024;
  size_t receive_buffer_bytes_ = 64 * 1024;
  size_t backlog_ = 4096;  // as Linux's
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_NETWORK_H_
