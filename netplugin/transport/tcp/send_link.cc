#include "netplugin/transport/tcp/send_link.h"

#include <algorithm>

#include "base/core/clock.h"
#include "netplugin/flow/stripe.h"

namespace r2cc::net {
namespace {

// An estimate takes so long of work: shorter ones are mostly bursts through buffers.
constexpr int64_t kBusyLeast = 10 * kNanosPerMs;

}  // namespace

void SendLink::Close(Poller* poller) {
  calls.clear();
  if (control != nullptr) control->Abandon();
  control.reset();
  for (Bulk& one : bulk) {
    if (one.sender == nullptr) continue;
    poller->Remove(one.token, one.sender->fd());
    one.sender->Abandon();
  }
  bulk.clear();
  counted_ = {};
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
  }
  const int64_t busy_ns = all.busy_ns - counted_.busy_ns;
  if (busy_ns < kBusyLeast) return all;
  rate_bytes_per_s_ = static_cast<double>(all.delivered_bytes - counted_.delivered_bytes) * kNanosPerSecond / static_cast<double>(busy_ns);
  counted_ = all;
  const uint32_t before = limit_bytes_;
  limit_bytes_ = QueueLimitBytes(rate_bytes_per_s_, spread_);
  if (limit_bytes_ > before + before / 8 || limit_bytes_ < before - before / 8) Limit();
  return all;
}

void SendLink::LimitQueues(bool spread) {
  spread_ = spread;
  limit_bytes_ = QueueLimitBytes(rate_bytes_per_s_, spread);
  Limit();
}

void SendLink::Limit() {
  for (const Bulk& one : bulk)
    if (one.sender != nullptr) LimitUnsent(one.sender->fd(), limit_bytes_);
}

bool SendLink::AnyUnsent(FunctionRef<bool(const Chunk&)> is_so) const {
  return std::any_of(bulk.begin(), bulk.end(), [&](const Bulk& one) { return one.sender != nullptr && one.sender->AnyUnsent(is_so); });
}

void SendLink::Rebase(FlowId flow, MessageId message, const std::byte* copy) {
  for (Bulk& one : bulk)
    if (one.sender != nullptr) one.sender->Rebase(flow, message, copy);
}

}  // namespace r2cc::net
