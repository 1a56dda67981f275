#include "tests/sim/network.h"

#include <algorithm>
#include <utility>

#include "tests/sim/connection.h"

namespace r2cc::sim {
namespace {

constexpr size_t kSegmentBytes = 4096;
// Linux goes on doubling for minutes; bounded here so that a healed path is used again within the run.
constexpr Nanos kRetransmitMost = 5 * kNanosPerSecond;
constexpr Nanos kSynAgain = kNanosPerSecond;
constexpr Nanos kKeepAliveEvery = kNanosPerSecond;
constexpr int kKeepAliveSilences = 7;

Nanos Doubled(Nanos wait) { return std::clamp(wait * 2, Network::kRetransmitLeast, kRetransmitMost); }

}  // namespace

// ---- connecting ----

std::shared_ptr<Socket> Network::Connect(Port from, Port to, bool keep_alive) {
  auto connection = std::make_shared<Connection>();
  connection->ends[0].port = from;
  connection->ends[1].port = to;
  connection->ends[0].open = true;
  connection->keep_alive = keep_alive;
  auto socket = std::make_shared<Socket>(this, connection, 0);
  connection->ends[0].socket = socket;
  std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
  connections_.push_back(connection);
  Syn(connection, kSynAgain);
  return socket;
}

void Network::Syn(std::shared_ptr<Connection> connection, Nanos again_after) {
  const Port from = connection->ends[0].port, to = connection->ends[1].port;
  timeline_->After(Latency(from, to), [this, connection, again_after, from, to] {
    if (!connection->ends[0].open) return;
    const HostState& host = hosts_[NodeOf(to.host)];
    const bool refused = host.dead || host.handler == nullptr || At(to).refuses;
    if (!Passes(from, to) || (!refused && At(to).waiting.size() >= backlog_)) {
      timeline_->After(again_after, [this, connection, again_after] { Syn(connection, again_after * 2); });
      return;
    }
    connection->ends[1].open = !refused;
    Answer(connection, refused, kSynAgain);
  });
}

void Network::Answer(std::shared_ptr<Connection> connection, bool refused, Nanos again_after) {
  const Port from = connection->ends[0].port, to = connection->ends[1].port;
  timeline_->After(Latency(to, from), [this, connection, refused, again_after, from, to] {
    Connection::End& client = connection->ends[0];
    Connection::End& server = connection->ends[1];
    if (!client.open) return;
    if (!Passes(to, from)) {
      timeline_->After(again_after, [this, connection, refused, again_after] { Answer(connection, refused, again_after * 2); });
      return;
    }
    if (refused) return Break(connection, 0, true);
    client.connected = true;
    if (connection->keep_alive) KeepAlive(connection);
    HostState& host = hosts_[NodeOf(to.host)];
    if (host.dead) {
      server.open = false;
      SendReset(connection, 1);
    } else if (At(to).swallows) {
      server.deaf = true;
    } else {
      At(to).waiting.push_back(connection);
      host.handler->Arrived(to);
    }
    Signal(connection, 0);
  });
}

std::shared_ptr<Socket> Network::Accept(Port local) {
  auto& waiting = At(local).waiting;
  if (waiting.empty()) return nullptr;
  const std::shared_ptr<Connection> connection = std::move(waiting.front());
  waiting.pop_front();
  auto socket = std::make_shared<Socket>(this, connection, 1);
  connection->ends[1].port = local;
  connection->ends[1].socket = socket;
  connection->ends[1].connected = true;
  return socket;
}

// ---- bytes ----

Nanos Network::Latency(Port from, Port to) {
  const Path& path = PathOf(from, to);
  const Nanos jitter = path.options.jitter > 0 ? timeline_->random().Between(0, path.options.jitter) : 0;
  return path.options.delay + jitter + std::max<Nanos>(0, path.held_until - timeline_->now());
}

const Network::Path& Network::Look(Port from, Port to) const {
  static const Path fresh;
  const auto known = paths_.find({OnNode(from), OnNode(to)});
  return known == paths_.end() ? fresh : known->second;
}

bool Network::IsBlocked(Port port) const {
  const auto known = ports_.find(OnNode(port));
  return known != ports_.end() && known->second.blocked > 0;
}

bool Network::Passes(Port from, Port to) const {
  const Path& path = Look(from, to);
  return path.options.reachable && path.blocked == 0 && !IsBlocked(from) && !IsBlocked(to);
}

bool Network::Crosses(const Connection& connection, int side, size_t bytes) {
  const Connection::End& end = connection.ends[side];
  const Port to = connection.ends[1 - side].port;
  if (!Passes(end.port, to) || (bytes > kSmallPacketBytes && PathOf(end.port, to).large_blocked > 0)) return false;
  return end.lost_permille == 0 || timeline_->random().Pick(1000) >= end.lost_permille;
}

bool Network::Answers(const Connection& connection) {
  const Connection::End &one = connection.ends[0], &other = connection.ends[1];
  return Passes(one.port, other.port) && Passes(other.port, one.port) && one.lost_permille < 1000 && other.lost_permille < 1000;
}

int64_t Network::Rate(Port from, Port to) {
  return std::max<int64_t>(1, PathOf(from, to).options.rate_bytes_per_s / std::max(At(from).divisor, At(to).divisor));
}

void Network::Transmit(const std::shared_ptr<Connection>& connection, int side) {
  Connection::End& end = connection->ends[side];
  const Connection::End& other = connection->ends[1 - side];
  Path& path = PathOf(end.port, other.port);
  const int64_t rate = Rate(end.port, other.port);
  while (end.unsent.size() > 0 || (end.end_wanted && !end.end_sent)) {
    Segment segment;
    if (end.unsent.size() > 0) {
      const size_t taken = end.unacknowledged + other.arrived.size();
      if (taken >= receive_buffer_bytes_) break;
      segment.bytes.resize(std::min({kSegmentBytes, end.unsent.size(), receive_buffer_bytes_ - taken}));
      end.unsent.Take(segment.bytes.data(), segment.bytes.size());
      end.unacknowledged += segment.bytes.size();
    }
    if (end.unsent.size() == 0 && end.end_wanted) segment.last = end.end_sent = true;
    path.free_at = std::max(path.free_at, timeline_->now()) + static_cast<Nanos>(segment.bytes.size()) * kNanosPerSecond / rate;
    end.last_arrival = segment.arrival = std::max(end.last_arrival, path.free_at + Latency(end.port, other.port));
    end.flying.push_back(std::move(segment));
  }
  if (end.flying.empty() || end.arrival_planned) return;
  end.arrival_planned = true;
  timeline_->At(end.flying.front().arrival, [this, connection, side] { Arrive(connection, side); });
}

void Network::Arrive(const std::shared_ptr<Connection>& connection, int side) {
  Connection::End& end = connection->ends[side];
  Connection::End& other = connection->ends[1 - side];
  end.arrival_planned = false;
  if (end.flying.empty()) return;
  if (const Nanos until = PathOf(end.port, other.port).held_until; until > timeline_->now()) {
    end.arrival_planned = true;
    timeline_->At(until + timeline_->random().Between(0, 50'000), [this, connection, side] { Arrive(connection, side); });
    return;
  }
  // A reset that cannot come back is asked for again, like an acknowledgement.
  const bool nobody = !other.open || other.broken;
  if (!Crosses(*connection, side, end.flying.front().bytes.size()) || (nobody && !Crosses(*connection, 1 - side, 0))) {
    if (end.aborted) return end.flying.clear();
    end.retransmit = Doubled(end.retransmit);
    end.arrival_planned = true;
    timeline_->After(end.retransmit, [this, connection, side] { Arrive(connection, side); });
    return;
  }
  end.retransmit = 0;
  if (nobody) {
    // Nobody is there: the kernel answers with a reset.
    const bool bytes = std::any_of(end.flying.begin(), end.flying.end(), [](const Segment& s) { return !s.bytes.empty(); });
    end.flying.clear();
    if (bytes) SendReset(connection, 1 - side, true);
    return;
  }
  size_t bytes = 0;
  while (!end.flying.empty() && end.flying.front().arrival <= timeline_->now()) {
    const Segment& segment = end.flying.front();
    other.arrived.Append(segment.bytes.data(), segment.bytes.size());
    bytes += segment.bytes.size();
    if (segment.last) other.end_arrived = true;
    end.flying.pop_front();
  }
  if (!end.flying.empty()) {
    end.arrival_planned = true;
    timeline_->At(end.flying.front().arrival, [this, connection, side] { Arrive(connection, side); });
  }
  if (bytes > 0) Acknowledge(connection, side, bytes, 0);
  Signal(connection, 1 - side);
}

void Network::Acknowledge(std::shared_ptr<Connection> connection, int side, size_t bytes, Nanos again_after) {
  const Port from = connection->ends[1 - side].port, to = connection->ends[side].port;
  timeline_->After(Latency(from, to), [this, connection, side, bytes, again_after, from, to] {
    Connection::End& end = connection->ends[side];
    if (end.broken || end.aborted) return;
    // What is sent again to an end that is closed is answered with a reset: see Arrive().
    if (again_after > 0 && !connection->ends[1 - side].open) return;
    if (!Crosses(*connection, 1 - side, 0)) {
      const Nanos wait = Doubled(again_after);
      timeline_->After(wait, [this, connection, side, bytes, wait] { Acknowledge(connection, side, bytes, wait); });
      return;
    }
    end.unacknowledged -= std::min(bytes, end.unacknowledged);
    end.acknowledged_bytes += bytes;
    if (bytes > 0) end.progressed = timeline_->now();
    if (end.busy_since != 0 && end.unacknowledged == 0 && end.unsent.size() == 0) {
      end.busy += timeline_->now() - end.busy_since;
      end.busy_since = 0;
    }
    Transmit(connection, side);
    if (end.open) Signal(connection, side);
  });
}

void Network::SendReset(const std::shared_ptr<Connection>& connection, int side, bool until_received) {
  const Port from = connection->ends[side].port, to = connection->ends[1 - side].port;
  const Nanos arrival = std::max(timeline_->now() + Latency(from, to), connection->ends[side].last_arrival);
  timeline_->At(arrival, [this, connection, side, until_received] {
    if (Crosses(*connection, side, 0)) return Break(connection, 1 - side, false);
    if (until_received) timeline_->After(Doubled(0), [this, connection, side] { SendReset(connection, side, true); });
  });
}

void Network::Break(const std::shared_ptr<Connection>& connection, int side, bool refused) {
  Connection::End& end = connection->ends[side];
  if (end.broken || !end.open) return;
  end.broken = true;
  end.refused = refused;
  end.unsent.clear();
  end.flying.clear();
  end.unacknowledged = 0;
  Signal(connection, side);
}

void Network::Signal(const std::shared_ptr<Connection>& connection, int side) {
  Connection::End& end = connection->ends[side];
  if (end.deaf || !end.open) return;
  if (const auto socket = end.socket.lock(); socket != nullptr && socket->on_ready) socket->on_ready();
}

void Network::KeepAlive(std::shared_ptr<Connection> connection) {
  timeline_->After(kKeepAliveEvery, [this, connection] {
    bool alive = false;
    for (int side = 0; side < 2; ++side) {
      Connection::End& end = connection->ends[side];
      const Connection::End& other = connection->ends[1 - side];
      if (!end.open || end.broken) continue;
      alive = true;
      // As TCP_USER_TIMEOUT.
      const bool waits = end.unsent.size() + end.unacknowledged > 0;
      if (waits && timeline_->now() - end.progressed >= kKeepAliveSilences * kKeepAliveEvery) {
        Break(connection, side, false);
        continue;
      }
      const bool answered = Crosses(*connection, side, 0) && Crosses(*connection, 1 - side, 0);
      if (answered && (!other.open || other.broken) && !other.end_wanted) {
        Break(connection, side, false);
      } else if (answered) {
        end.silences = 0;
      } else if (++end.silences >= kKeepAliveSilences) {
        Break(connection, side, false);
      }
    }
    if (alive) KeepAlive(connection);
  });
}

// ---- faults ----

void Network::Reset(Port a, Port b, int ends) {
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (connection == nullptr) continue;
    for (int side = 0; side < 2; ++side) {
      const Port own = connection->ends[side].port, other = connection->ends[1 - side].port;
      if ((ends & 1) != 0 && IsAt(own, a) && IsAt(other, b)) Break(connection, side, false);
      if ((ends & 2) != 0 && IsAt(own, b) && IsAt(other, a)) Break(connection, side, false);
    }
  }
}

bool Network::LosePackets(Port from, Port to, int choice, int lost_permille) {
  std::vector<Connection::End*> ends;
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    for (int side = 0; connection != nullptr && side < 2; ++side) {
      Connection::End& end = connection->ends[side];
      if (IsAt(end.port, from) && IsAt(connection->ends[1 - side].port, to) && end.open && !end.broken) ends.push_back(&end);
    }
  }
  if (ends.empty()) return false;
  ends[static_cast<size_t>(choice) % ends.size()]->lost_permille = lost_permille;
  return true;
}

void Network::Renumber(Port port) {
  ++At(port).generation;
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    for (int side = 0; connection != nullptr && side < 2; ++side)
      if (IsAt(connection->ends[side].port, port)) Break(connection, side, false);
  }
}

void Network::KillHost(int host, bool holds_sockets) {
  hosts_[NodeOf(host)].dead = true;
  // Nobody has a descriptor of what was not accepted: it ends with its listener.
  for (auto& [port, state] : ports_) {
    if (port.host != NodeOf(host)) continue;
    for (const auto& connection : std::exchange(state.waiting, {})) {
      if (!std::exchange(connection->ends[1].open, false)) continue;
      connection->ends[1].deaf = true;
      SendReset(connection, 1);
    }
  }
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (connection == nullptr) continue;
    for (int side = 0; side < 2; ++side) {
      Connection::End& end = connection->ends[side];
      if (end.port.host != host || !end.open) continue;
      end.deaf = true;
      if (holds_sockets) continue;
      if (const auto socket = end.socket.lock(); socket != nullptr)
        socket->Close();
      else
        end.open = false;
    }
  }
}

}  // namespace r2cc::sim
