#include "netplugin/transport/tcp/send_link.h"

#include <algorithm>

namespace r2cc::net {
namespace {

// Estimates waver: a small change is not worth a call.
bool IsNear(uint64_t value, uint64_t other) { return value - value / 8 <= other && other - other / 8 <= value; }

}  // namespace

void SendLink::Close(Poller* poller, Movers* movers) {
  calls.clear();
  if (control != nullptr) control->Abandon();
  control.reset();
  for (Bulk& one : bulk) {
    if (one.sender == nullptr) continue;
    one.hire.End(movers, one.sender->fd());
    poller->Remove(one.token, one.sender->fd());
    one.sender->Abandon();
  }
  bulk.clear();
}

bool SendLink::greeted() const {
  return control != nullptr && std::all_of(bulk.begin(), bulk.end(), [](const Bulk& one) { return one.sender != nullptr; });
}

void SendLink::Prove(uint64_t session, LinkId link) {
  for (size_t i = 0; i < bulk.size(); ++i) {
    bulk[i].sender->SendProof(ProofPattern(session, link, incarnation, static_cast<uint8_t>(i)));
    bulk[i].blocked = false;
  }
}

Account SendLink::Measure() {
  Account all;
  for (const Bulk& one : bulk) {
    if (one.sender == nullptr) continue;
    const Account account = AccountOf(one.sender->fd());
    all.delivered_bytes += account.delivered_bytes;
    // Several sockets share the rail at the same time.
    all.busy_ns = std::max(all.busy_ns, account.busy_ns);
    all.round_trip_ns = std::max(all.round_trip_ns, account.round_trip_ns);
  }
  round_trip_ = all.round_trip_ns;
  return all;
}

void SendLink::Adapt(double rate_bytes_per_s, bool spread) {
  in_use_ = SocketsInUse(rate_bytes_per_s, bulk.size());
  const uint32_t bytes = QueueLimitBytes(rate_bytes_per_s, spread);
  const uint64_t held_bytes = HoldLimitBytes(rate_bytes_per_s, round_trip_, spread);
  if (IsNear(bytes, limit_bytes_) && IsNear(held_bytes, held_bytes_)) return;
  limit_bytes_ = bytes;
  held_bytes_ = held_bytes;
  for (const Bulk& one : bulk)
    if (one.sender != nullptr) LimitQueue(*one.sender);
}

void SendLink::LimitQueue(const BulkSender& joined) const {
  LimitUnsent(joined.fd(), limit_bytes_);
  LimitHeld(joined.fd(), held_bytes_);
}

void SendLink::Await() const {
  for (const Bulk& one : bulk) one.hire.Await();
}

bool SendLink::AnyUnsent(FunctionRef<bool(const Chunk&)> is_so) const {
  return std::any_of(bulk.begin(), bulk.end(), [&](const Bulk& one) { return one.sender != nullptr && one.sender->AnyUnsent(is_so); });
}

void SendLink::Rebase(FlowId flow, MessageId message, const std::byte* copy) {
  // A mover has not seen a message that was posted in this turn.
  for (Bulk& one : bulk)
    if (one.sender != nullptr && !one.hire.on() && one.sender->busy()) one.sender->Rebase(flow, message, copy);
}

}  // namespace r2cc::net
