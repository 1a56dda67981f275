#include "tests/sim/socket.h"

#include <algorithm>

#include "tests/sim/charge.h"
#include "tests/sim/connection.h"
#include "tests/sim/network.h"

namespace r2cc::sim {

bool Socket::connected() const { return connection_->ends[side_].connected && !broken(); }
bool Socket::refused() const { return connection_->ends[side_].refused; }
bool Socket::broken() const { return connection_->ends[side_].broken; }
bool Socket::ended() const { return connection_->ends[side_].end_arrived && Readable() == 0; }
size_t Socket::Readable() const { return connection_->ends[side_].arrived.size(); }
Port Socket::local() const { return connection_->ends[side_].port; }
Port Socket::remote() const { return connection_->ends[1 - side_].port; }
size_t Socket::Unacknowledged() const { return connection_->ends[side_].unsent.size() + connection_->ends[side_].unacknowledged; }
uint64_t Socket::acknowledged_bytes() const { return connection_->ends[side_].acknowledged_bytes; }

bool Socket::window_open() const {
  const Connection::End& end = connection_->ends[side_];
  return end.unsent.size() == 0 || end.unacknowledged > 0 || !network_->Answers(*connection_);
}

int Socket::timeouts() const {
  const Connection::End& end = connection_->ends[side_];
  if (Unacknowledged() == 0) return 0;
  int timeouts = 0;
  Nanos waited = network_->timeline()->now() - end.progressed;
  for (Nanos wait = Network::kRetransmitLeast; waited >= wait && timeouts < 15; waited -= wait, wait *= 2) ++timeouts;
  return timeouts;
}

Nanos Socket::busy() const {
  const Connection::End& end = connection_->ends[side_];
  return end.busy + (end.busy_since == 0 ? 0 : network_->timeline()->now() - end.busy_since);
}

size_t Socket::Read(uint8_t* to, size_t bytes) {
  Connection::End& end = connection_->ends[side_];
  const size_t taken = end.arrived.Take(to, bytes);
  // The window opens: the other end may go on, as soon as it hears of it.
  if (taken > 0 && connection_->ends[1 - side_].unsent.size() > 0) network_->Acknowledge(connection_, 1 - side_, 0, 0);
  return taken;
}

size_t Socket::Room() const {
  const Connection::End& end = connection_->ends[side_];
  if (!end.connected || end.broken || end.end_wanted) return 0;
  const size_t used = end.unsent.size() + end.unacknowledged;
  return used < network_->send_buffer_bytes_ ? network_->send_buffer_bytes_ - used : 0;
}

size_t Socket::Write(const uint8_t* from, size_t bytes) {
  bytes = std::min(bytes, Room());
  if (bytes == 0) return 0;
  const Charge charge(Account::kSimulation);  // the kernel's
  Connection::End& end = connection_->ends[side_];
  end.unsent.Append(from, bytes);
  if (end.busy_since == 0) end.busy_since = end.progressed = network_->timeline()->now();
  network_->Transmit(connection_, side_);
  return bytes;
}

void Socket::HalfClose() {
  Connection::End& end = connection_->ends[side_];
  if (!end.open || end.end_wanted) return;
  end.end_wanted = true;
  network_->Transmit(connection_, side_);
}

void Socket::Close() {
  Connection::End& end = connection_->ends[side_];
  if (!end.open) return;
  if (end.arrived.size() > 0 || !end.connected) return Reset();
  HalfClose();
  end.open = false;
}

void Socket::Reset() {
  Connection::End& end = connection_->ends[side_];
  if (!end.open) return;
  end.open = false;
  end.aborted = true;
  end.unsent.clear();
  end.arrived.clear();
  // What is on the wire may still arrive before the reset, or not.
  if (network_->timeline()->random().Chance(2)) {
    end.flying.clear();
    end.last_arrival = 0;
  }
  if (end.connected && !end.broken) network_->SendReset(connection_, side_);
}

}  // namespace r2cc::sim
