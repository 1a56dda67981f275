// The way of a request through the fake fabric: initiator, packets, target, answer.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/core/verbs/fake_fabric.h"

namespace r2cc::verbs {
namespace {

// Requests of one queue pair on their way: soft-RoCE stops at 64 packets.
constexpr size_t kWindow = 16;
// The cost of a packet at its port in addition to its bytes.
constexpr uint64_t kHeaderBytes = 64;
// The timer with which a target answers that it has no receive: the exponent's table begins with 655 ms and then goes up from 10 us,
// doubling about every two steps; 12 is 640 us.
Nanos RnrWait(uint8_t timer) { return 10'000 * (Nanos{1} << (timer / 2)); }
Nanos Timeout(uint8_t exponent) { return 4'096 * (Nanos{1} << exponent); }

bool IsWrite(SendKind kind) { return kind == SendKind::kWrite || kind == SendKind::kWriteWithImmediate; }
bool Consumes(SendKind kind) { return kind == SendKind::kSend || kind == SendKind::kWriteWithImmediate; }

CompletionKind KindOf(SendKind kind) {
  switch (kind) {
    case SendKind::kSend: return CompletionKind::kSend;
    case SendKind::kRead: return CompletionKind::kRead;
    case SendKind::kWrite:
    case SendKind::kWriteWithImmediate: break;
  }
  return CompletionKind::kWrite;
}

}  // namespace

// ---- the initiator ----

void FakeFabric::Transmit(FakeQueuePair* pair) {
  if (pair->sending || pair->state != QueuePairState::kReadyToSend || pair->next >= std::min(pair->works.size(), kWindow)) return;
  if (StallOf(*pair) == FakeStall::kSendsNothing) return;
  pair->sending = true;
  SendPacket(pair->id, pair->incarnation, pair->works[pair->next].sequence, 0);
}

Status FakeFabric::Gather(const FakeQueuePair& pair, const FakeWork& work, uint64_t from, uint64_t bytes, std::vector<std::byte>* out) {
  const bool rxe = device(pair.port.host, pair.port.device)->info.driver == "rdma_rxe";
  out->clear();
  if (work.request.inlined) {
    out->assign(work.inlined.begin() + static_cast<ptrdiff_t>(from), work.inlined.begin() + static_cast<ptrdiff_t>(from + bytes));
    return Status::kSuccess;
  }
  for (const Segment& segment : work.segments) {
    if (segment.bytes == 0) continue;
    if (RegionOf(pair.domain, segment.local_key, false, reinterpret_cast<uintptr_t>(segment.address), segment.bytes, 0) == nullptr)
      return rxe ? Status::kLocalQueuePair : Status::kLocalProtection;
    if (from >= segment.bytes) {
      from -= segment.bytes;
      continue;
    }
    const auto* const data = static_cast<const std::byte*>(segment.address) + from;
    const uint64_t most = std::min<uint64_t>(bytes, segment.bytes - from);
    out->insert(out->end(), data, data + most);
    if (on_reading) on_reading(pair.port, data, most);
    bytes -= most;
    from = 0;
    if (bytes == 0) break;
  }
  return Status::kSuccess;
}

void FakeFabric::SendPacket(QueuePairId id, uint64_t incarnation, uint64_t sequence, uint32_t index) {
  FakeQueuePair* const pair = Find(id);
  if (pair == nullptr || pair->incarnation != incarnation) return;
  const auto at = std::find_if(pair->works.begin(), pair->works.end(), [&](const FakeWork& work) { return work.sequence == sequence; });
  if (at == pair->works.end()) {  // it was acknowledged while it was sent again
    pair->sending = false;
    return Transmit(pair);
  }
  const FakeWork& work = *at;
  FakePort* const own = port(pair->port);
  // The address is looked at for each packet: a queue pair whose address is gone has no route.
  const auto destination = PortWithGid(pair->receive.path.remote_gid);
  if (own->info.link_layer == LinkLayer::kEthernet && !own->gids.contains(pair->receive.path.gid_index))
    return Fail(pair, Status::kLocalQueuePair);
  const uint64_t carried = work.request.kind == SendKind::kRead ? 0 : work.bytes;
  // A message that is sent is short, and comes whole.
  const uint64_t packets_most = work.request.kind == SendKind::kSend ? 1 : options.packets_most;
  const uint64_t step = std::max<uint64_t>(pair->receive.mtu_bytes, (carried + packets_most - 1) / packets_most);
  const auto count = static_cast<uint32_t>(std::max<uint64_t>(1, (carried + step - 1) / step));
  // The packets of every other plain write come in the opposite order.
  const bool backwards = options.reorder && work.request.kind == SendKind::kWrite && sequence % 2 == 0;
  const uint32_t place = backwards ? count - 1 - index : index;
  Packet packet{pair->port,
                destination.value_or(pair->port),
                pair->number,
                pair->receive.remote_number,
                pair->send.send_psn,
                sequence,
                place,
                count,
                place * step,
                {},
                {}};
  packet.work.request = work.request;
  packet.work.request.segments = {};
  packet.work.bytes = work.bytes;
  const uint64_t bytes = std::min(step, carried - std::min(carried, packet.offset));
  if (const Status status = Gather(*pair, work, packet.offset, bytes, &packet.bytes); status != Status::kSuccess) return Fail(pair, status);
  FakePath way;
  const bool passes = destination.has_value() && Passes(pair->port, *destination, &way) && bytes <= way.packet_bytes_most;
  const Nanos takes = static_cast<Nanos>(bytes + kHeaderBytes) * kNanosPerSecond / std::max<int64_t>(way.bytes_per_s, 1'000'000);
  const Nanos sent = own->free_at = std::max(time_->now(), own->free_at) + takes;
  if (passes) {
    Carry(std::max(sent, way.delayed_until) + way.delay, [this, packet] {
      FakePath still;
      if (Passes(packet.from, packet.to, &still)) Arrive(packet);
    });
  }
  time_->At(sent, [this, id, incarnation, sequence, index, count] {
    FakeQueuePair* const sender = Find(id);
    if (sender == nullptr || sender->incarnation != incarnation) return;
    if (index + 1 < count) return SendPacket(id, incarnation, sequence, index + 1);
    sender->sending = false;
    if (sender->next < sender->works.size() && sender->works[sender->next].sequence == sequence) ++sender->next;
    StartTimer(sender);
    Transmit(sender);
  });
}

void FakeFabric::Carry(Nanos when, const std::function<void()>& arrives) {
  time_->At(when, arrives);
  if (options.duplicate_one_in > 0 && time_->Below(static_cast<uint64_t>(options.duplicate_one_in)) == 0)
    time_->At(when + static_cast<Nanos>(time_->Below(static_cast<uint64_t>(options.duplicate_late_most))), arrives);
}

void FakeFabric::StartTimer(FakeQueuePair* pair) {
  if (pair->works.empty() || pair->send.timeout == 0) return;
  const uint64_t timer = ++pair->timer;
  time_->After(Timeout(pair->send.timeout), [this, id = pair->id, incarnation = pair->incarnation, timer] {
    FakeQueuePair* const sender = Find(id);
    if (sender == nullptr || sender->incarnation != incarnation || sender->timer != timer || sender->works.empty()) return;
    const bool endless = (sender->send.retry_cnt == 7 && device(sender->port.host, sender->port.device)->info.driver == "rdma_rxe") ||
                         StallOf(*sender) == FakeStall::kSendsNothing;
    if (++sender->attempts > sender->send.retry_cnt && !endless) return Fail(sender, Status::kRetryExceeded);
    sender->next = 0;
    StartTimer(sender);
    Transmit(sender);
  });
}

void FakeFabric::Acknowledged(QueuePairId id, uint64_t incarnation, uint64_t sequence, const std::vector<std::byte>& read) {
  FakeQueuePair* const pair = Find(id);
  if (pair == nullptr || pair->incarnation != incarnation) return;
  while (!pair->works.empty() && pair->works.front().sequence <= sequence) {
    const FakeWork work = std::move(pair->works.front());
    pair->works.pop_front();
    if (pair->next > 0) --pair->next;
    if (work.request.kind == SendKind::kRead && !work.segments.empty() && work.sequence == sequence)
      std::memcpy(const_cast<void*>(work.segments[0].address), read.data(), std::min<size_t>(read.size(), work.segments[0].bytes));
    const bool reported = StallOf(*pair) != FakeStall::kCompletesNothing;
    pair->awaited |= work.request.signaled && !reported;
    if (work.request.signaled && reported)
      Complete(pair->limits.send_completions,
               {{.wr_id = work.request.wr_id, .kind = KindOf(work.request.kind), .queue_pair_number = pair->number}, id, work.sequence});
  }
  pair->attempts = pair->rnr_attempts = 0;
  ++pair->timer;
  StartTimer(pair);
  Transmit(pair);
}

void FakeFabric::Refused(QueuePairId id, uint64_t incarnation, uint64_t sequence, Status status) {
  FakeQueuePair* const pair = Find(id);
  if (pair == nullptr || pair->incarnation != incarnation || pair->works.empty() || sequence < pair->works.front().sequence) return;
  Acknowledged(id, incarnation, sequence - 1, {});
  Fail(pair, status);
}

void FakeFabric::Missed(QueuePairId id, uint64_t incarnation, uint64_t sequence) {
  FakeQueuePair* const pair = Find(id);
  if (pair == nullptr || pair->incarnation != incarnation || pair->works.empty() || sequence < pair->works.front().sequence) return;
  pair->next = 0;
  Acknowledged(id, incarnation, sequence - 1, {});
}

void FakeFabric::NotReady(QueuePairId id, uint64_t incarnation, uint64_t sequence, Nanos wait) {
  FakeQueuePair* const pair = Find(id);
  if (pair == nullptr || pair->incarnation != incarnation || pair->works.empty() || sequence < pair->works.front().sequence) return;
  Acknowledged(id, incarnation, sequence - 1, {});
  if (pair->send.rnr_retry < 7 && ++pair->rnr_attempts > pair->send.rnr_retry) return Fail(pair, Status::kReceiverNotReadyExceeded);
  pair->attempts = 0;
  const uint64_t timer = ++pair->timer;
  pair->next = pair->works.size();  // nothing is sent until then
  time_->After(wait, [this, id, incarnation, timer] {
    FakeQueuePair* const sender = Find(id);
    if (sender == nullptr || sender->incarnation != incarnation || sender->timer != timer) return;
    sender->next = 0;
    StartTimer(sender);
    Transmit(sender);
  });
}

void FakeFabric::Fail(FakeQueuePair* pair, Status status) {
  if (pair->works.empty() || pair->state != QueuePairState::kReadyToSend) return;
  const FakeWork work = std::move(pair->works.front());
  pair->works.pop_front();
  // Nothing but the name and the status: a driver leaves the other fields undefined.
  Complete(
      pair->limits.send_completions,
      {{.wr_id = work.request.wr_id, .status = status, .vendor_error = 0x81, .queue_pair_number = pair->number}, pair->id, work.sequence});
  ToError(pair);
}

// ---- the target ----

void FakeFabric::Answer(const Packet& packet, std::function<void(QueuePairId, uint64_t)> what) {
  FakePath way;
  if (!Passes(packet.to, packet.from, &way)) return;
  Carry(std::max(time_->now(), way.delayed_until) + way.delay, [this, packet, what = std::move(what)] {
    FakePath still;
    FakeQueuePair* const sender = FindNumber(packet.from.host, packet.from.device, packet.source);
    if (sender != nullptr && sender->send.send_psn == packet.psn && Passes(packet.to, packet.from, &still))
      what(sender->id, sender->incarnation);
  });
}

void FakeFabric::Arrive(const Packet& packet) {
  FakeQueuePair* const target = FindNumber(packet.to.host, packet.to.device, packet.destination);
  if (target == nullptr || (target->state != QueuePairState::kReadyToReceive && target->state != QueuePairState::kReadyToSend)) return;
  if (target->receive.remote_number != packet.source || target->receive.receive_psn != packet.psn) return;
  const SendRequest& request = packet.work.request;
  if (packet.sequence < target->expected && request.kind == SendKind::kRead) return Deliver(target, packet);  // its answer was lost
  if (packet.sequence < target->expected)
    return Answer(packet, [this, sequence = target->expected - 1](QueuePairId id, uint64_t incarnation) {
      Acknowledged(id, incarnation, sequence, {});
    });
  if (packet.sequence > target->expected && std::exchange(target->missed, target->expected) != target->expected)
    return Answer(packet, [this, sequence = target->expected](QueuePairId id, uint64_t incarnation) { Missed(id, incarnation, sequence); });
  if (packet.sequence > target->expected || (target->seen >> packet.index & 1) != 0) return;
  if (Consumes(request.kind) && packet.index + 1 == packet.count && target->receives.empty())
    return Answer(packet, [this, sequence = packet.sequence, wait = RnrWait(target->receive.min_rnr_timer)](
                              QueuePairId id, uint64_t incarnation) { NotReady(id, incarnation, sequence, wait); });
  FakeRegion* region = nullptr;
  if (request.kind != SendKind::kSend && packet.work.bytes > 0) {
    const bool read = request.kind == SendKind::kRead;
    region =
        RegionOf(target->domain, request.remote_key, true, request.remote_address, packet.work.bytes, read ? kRemoteRead : kRemoteWrite);
    if (region == nullptr || (target->access & (read ? kRemoteRead : kRemoteWrite)) == 0) {
      Answer(packet, [this, sequence = packet.sequence](QueuePairId id, uint64_t incarnation) {
        Refused(id, incarnation, sequence, Status::kRemoteAccess);
      });
      if (!target->receives.empty()) {
        Complete(target->limits.receive_completions,
                 {{.wr_id = target->receives.front().wr_id, .status = Status::kRemoteAccess}, target->id, 0});
        target->receives.pop_front();
      }
      return ToError(target);
    }
  }
  target->seen |= uint64_t{1} << packet.index;
  const bool whole = ++target->arrived == packet.count;
  // The target does not look at later requests before all bytes of this one have come.
  if (whole) {
    ++target->expected;
    target->arrived = 0;
    target->seen = 0;
  }
  if (IsWrite(request.kind) && region != nullptr) {
    auto* const to = reinterpret_cast<std::byte*>(request.remote_address) + packet.offset;
    Place(target, region, to, packet.bytes);
  }
  if (whole) Deliver(target, packet);
}

// The completion at the target waits for all that is being placed; the acknowledgement does not: it means that the device has it.
void FakeFabric::Deliver(FakeQueuePair* target, const Packet& packet) {
  const SendRequest& request = packet.work.request;
  std::vector<std::byte> read;
  if (request.kind == SendKind::kRead &&
      RegionOf(target->domain, request.remote_key, true, request.remote_address, packet.work.bytes, kRemoteRead) != nullptr) {
    // Earlier data of the same queue pair is there.
    FinishPlacements([id = target->id](const Placement& placement) { return placement.queue_pair == id; });
    const auto* const from = reinterpret_cast<const std::byte*>(request.remote_address);
    read.assign(from, from + packet.work.bytes);
    if (on_reading) on_reading(target->port, from, read.size());
  }
  Answer(packet,
         [this, sequence = packet.sequence, read](QueuePairId id, uint64_t incarnation) { Acknowledged(id, incarnation, sequence, read); });
  if (!Consumes(request.kind)) return;
  FakeReceive receive = std::move(target->receives.front());
  target->receives.pop_front();
  Completion completion{.wr_id = receive.wr_id, .bytes = static_cast<uint32_t>(packet.work.bytes), .queue_pair_number = target->number};
  completion.kind = request.kind == SendKind::kSend ? CompletionKind::kReceive : CompletionKind::kReceiveWriteWithImmediate;
  completion.has_immediate = request.kind == SendKind::kWriteWithImmediate;
  completion.immediate = completion.has_immediate ? request.immediate : 0;
  if (request.kind == SendKind::kSend) {
    // In one segment, as the product posts them. Too short a one is an error at both ends.
    const FakeRegion* const region =
        receive.segments.empty() ? nullptr
                                 : RegionOf(target->domain, receive.segments[0].local_key, false,
                                            reinterpret_cast<uintptr_t>(receive.segments[0].address), packet.work.bytes, kLocalWrite);
    if (packet.work.bytes > 0 && (region == nullptr || packet.work.bytes > receive.segments[0].bytes)) {
      Complete(target->limits.receive_completions, {{.wr_id = receive.wr_id, .status = Status::kLocalLength}, target->id, 0});
      return ToError(target);
    }
    if (packet.work.bytes > 0) std::memcpy(const_cast<void*>(receive.segments[0].address), packet.bytes.data(), packet.bytes.size());
  }
  target->deliveries.push_back({last_id_, completion});
  RunDeliveries(target);
}

}  // namespace r2cc::verbs
