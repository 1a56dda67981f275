// Simulates RDMA devices of several hosts and the cables between them, in virtual time. The model was measured on soft-RoCE, or read in the
// source of drivers:
// - bytes are placed packet by packet, each some time after it has arrived: a fence that does not wait for that lets bytes through late;
// - RESET waits for it unless the driver is rdma_rxe; ERR does not, but the flush of a posted receive and a destroy do, and so does the end
//   of a region's registration;
// - packets of plain writes, and completions of neighbouring writes with immediate, may come out of order if asked; what carries an
//   immediate comes after all before it, and so does a send: a reliable connection completes its receives in order, on which the parts of
//   a frame and the answer to a close rely;
// - what is missing is asked for once; lost packets are sent again every 4.096 us * 2^timeout, retry_cnt times; rdma_rxe never counts a
//   retry_cnt of 7;
// - packets and answers may come twice, the second time to the present owner of the queue pair's number;
// - a message that finds no receive waits and is sent again after the receiver's timer;
// - an unsignaled request keeps its place in the send queue until a later completion was polled;
// - a queue pair reaches the regions of its own protection domain; a driver may give a released key to the next region (mlx5 does, last in,
//   first out);
// - a queue pair, or all of a device, may take requests and never report their end, whether it sends them or not: FakeStall;
// - rdma_rxe does not look at a receive that is posted in the error state until the state is set once more;
// - an event of a queue pair that was read and not acknowledged keeps it from being destroyed: forever, which is counted in hangs().
//
// One thread. FakeVerbs (fake_verbs.h) is a host's view of it.
#ifndef R2CC_BASE_CORE_VERBS_FAKE_FABRIC_H_
#define R2CC_BASE_CORE_VERBS_FAKE_FABRIC_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/verbs/fake_time.h"
#include "base/core/verbs/verbs.h"

namespace r2cc::verbs {

struct FakePortName {
  int host = 0;
  std::string device;
  uint8_t port = 1;
  friend auto operator<=>(const FakePortName&, const FakePortName&) = default;
};

struct FakePath {
  int64_t bytes_per_s = 1'000'000'000;  // 0: nothing passes
  Nanos delay = 5'000;
  Nanos delayed_until = 0;                  // what leaves before waits until then
  uint64_t packet_bytes_most = UINT64_MAX;  // larger packets are lost
};

// The way in which a queue pair treats posted requests. It changes no state, and no event reports it.
enum class FakeStall : uint8_t {
  kNone,
  kSendsNothing,      // they stay where they are, and no retry counter counts
  kCompletesNothing,  // they arrive, and their end is not reported
};

struct FakeOptions {
  uint32_t packets_most = 16;                    // of one request, at most 64: longer packets than the MTU keep tests quick
  Nanos placement_most = 3'000;                  // from a packet's arrival until its bytes are in memory
  int placement_late_one_in = 0;                 // one in this many packets takes up to the next value instead; 0: none
  Nanos placement_late_most = 50 * kNanosPerMs;  // soft-RoCE: 8 to 50 ms
  // one in this many packets, and answers, comes once more, up to the next value later; 0: none
  int duplicate_one_in = 0;
  Nanos duplicate_late_most = 500 * kNanosPerMs;
  bool reuse_keys = false;  // of a region that ended, by the next one; the last first
  bool reorder = false;     // packets of plain writes, and completions of writes with immediate among themselves
};

struct FakeWork {
  SendRequest request;
  std::vector<Segment> segments;
  std::vector<std::byte> inlined;
  uint64_t sequence = 0;
  uint64_t bytes = 0;
};
struct FakeReceive {
  uint64_t wr_id = 0;
  std::vector<Segment> segments;
};
struct FakeRegion {
  MemoryRegion keys;
  ContextId context{};
  DomainId domain{};
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  uint32_t access = 0;
};
struct FakeCompletion {
  Completion completion;
  QueuePairId queue_pair{};
  uint64_t retires = 0;  // sends up to this sequence; 0: a receive
};
struct FakeCompletionQueue {
  ContextId context{};
  CompletionChannelId channel{};
  uint32_t entries = 0;
  bool armed = false, broken = false;
  std::deque<FakeCompletion> queue;
};
struct FakeQueuePair {
  QueuePairId id{};
  ContextId context{};
  DomainId domain{};
  uint32_t number = 0;
  QueuePairLimits limits;
  QueuePairState state = QueuePairState::kReset;
  FakePortName port;
  uint32_t access = 0;
  ReadyToReceive receive;
  ReadyToSend send;
  // As initiator.
  std::deque<FakeWork> works;  // not acknowledged yet
  uint64_t posted = 0;         // the last one's sequence; the first is 1
  uint64_t retired = 0;        // of the last one whose place is free again
  size_t next = 0;             // in `works`: to be sent
  bool sending = false;
  int attempts = 0, rnr_attempts = 0;
  FakeStall stall = FakeStall::kNone;
  bool awaited = false;      // it stalls, and has kept the end of a signaled request for itself
  uint64_t incarnation = 0;  // grows whenever what was planned for it does not count any more
  uint64_t timer = 0;
  // As target.
  uint64_t expected = 1;
  uint32_t arrived = 0;  // packets of the one that is expected, ...
  uint64_t seen = 0;     // ... which: a bit each
  uint64_t missed = 0;   // the one that was reported to the initiator as missing
  std::deque<FakeReceive> receives;
  int placing = 0;  // packets that have arrived and are not in memory
  struct Delivery {
    uint64_t after = 0;  // the last placement before it
    Completion completion;
  };
  std::deque<Delivery> deliveries;
  bool flush_due = false;
  int unacknowledged_events = 0;
};
struct FakeContext {
  FakePortName device;  // without port
  bool dead = false;
  std::deque<AsyncEvent> events;
};
struct FakePort {
  bool carrier = true, silent = false;
  PortInfo info;
  std::map<uint32_t, GidEntry> gids;
  Nanos free_at = 0;
};
struct FakeDevice {
  DeviceInfo info;
  DeviceLimits limits;
  bool lost = false;
  FakeStall stall = FakeStall::kNone;  // of all its queue pairs
  std::map<uint8_t, FakePort> ports;
};

class FakeFabric {
 public:
  explicit FakeFabric(FakeTime* time, FakeOptions fake_options = {}) : options(fake_options), time_(time) {}

  FakeOptions options;
  // The way from one port to another, if both have a cable and neither is silent.
  std::function<FakePath(const FakePortName& from, const FakePortName& to)> path = [](const auto&, const auto&) { return FakePath{}; };

  // RoCE v2, one GID ::ffff:10.P.H.1 at index 1 of each port, where P counts devices of the host and ports.
  void AddDevice(int host, const std::string& name, const std::string& driver = "mlx5_core", uint8_t ports = 1);
  FakeDevice* device(int host, const std::string& name);
  FakePort* port(const FakePortName& name);
  // Before bytes come into memory that `pair` of the port's host may write; after bytes were taken from memory to be sent.
  std::function<void(const FakePortName& port, uint32_t pair, std::byte* to, size_t bytes)> on_placing;
  std::function<void(const FakePortName& port, const std::byte* from, size_t bytes)> on_reading;
  // Something has happened on the host: a completion, an event, bytes in its memory.
  void OnWake(int host, std::function<void()> wake) { wakes_[host] = std::move(wake); }

  // ---- faults ----

  void SetCarrier(const FakePortName& port, bool on);
  void SetSilent(const FakePortName& name, bool on) { port(name)->silent = on; }
  void SetGid(const FakePortName& port, const GidEntry& entry);
  void RemoveGid(const FakePortName& port, uint32_t index);
  void LoseDevice(int host, const std::string& name);
  // It can be opened again. Lost objects stay lost.
  void RestoreDevice(int host, const std::string& name) { device(host, name)->lost = false; }
  // The queue pair goes to the error state without a request; the event names the reason.
  void BreakQueuePair(int host, uint32_t number, AsyncKind event);
  // All queue pairs of the port that are joined to the other one; kOther: no event reports it, as with soft-RoCE.
  void BreakQueuePairs(const FakePortName& port, const FakePortName& other, AsyncKind event);
  // All of the port that are joined to the other one stall for ever; those that are made later do not.
  void StallQueuePairs(const FakePortName& port, const FakePortName& other, FakeStall stall);
  // Stalls the whole device, until kNone.
  void StallDevice(int host, const std::string& name, FakeStall stall);
  // The ways of queue pairs that stall while they are ready to send, and owe the end of a signaled request.
  struct Stalled {
    QueuePairId id{};
    FakePortName from, to;
    uint32_t number = 0;
  };
  std::vector<Stalled> StalledPairs();
  // A completion queue of one such queue pair loses what comes from now on.
  void BreakCompletionQueue(const FakePortName& port, const FakePortName& other);

  // Destroys that would have waited for ever.
  int hangs() const { return hangs_; }
  // Packets whose bytes came into memory after their queue pair should have ended.
  int late_placements() const { return late_placements_; }

 private:
  friend class FakeVerbs;
  struct Placement {
    QueuePairId queue_pair{};
    FakePortName port;
    uint32_t number = 0;  // the queue pair's
    MemoryRegionId region{};
    std::byte* to = nullptr;
    std::vector<std::byte> bytes;
  };
  struct Packet {
    FakePortName from, to;
    uint32_t source = 0, destination = 0;  // queue pairs
    uint32_t psn = 0;                      // of the sender's queue pair, in its present use
    uint64_t sequence = 0;
    uint32_t index = 0, count = 1;
    uint64_t offset = 0;
    FakeWork work;  // without data
    std::vector<std::byte> bytes;
  };

  bool Dead(ContextId context) const;
  bool Passes(const FakePortName& from, const FakePortName& to, FakePath* way);
  std::optional<FakePortName> PortWithGid(const Gid& gid);
  FakeQueuePair* Find(QueuePairId id);
  FakeQueuePair* FindNumber(int host, const std::string& device, uint32_t number);
  FakeRegion* RegionOf(DomainId domain, uint32_t key, bool remote, uint64_t address, uint64_t bytes, uint32_t access);
  void Wake(int host);
  void Event(const FakePortName& device, const AsyncEvent& event);

  // The initiator.
  FakeStall StallOf(const FakeQueuePair& pair);
  void Transmit(FakeQueuePair* pair);
  void SendPacket(QueuePairId id, uint64_t incarnation, uint64_t sequence, uint32_t index);
  Status Gather(const FakeQueuePair& pair, const FakeWork& work, uint64_t from, uint64_t bytes, std::vector<std::byte>* out);
  void StartTimer(FakeQueuePair* pair);
  void Acknowledged(QueuePairId id, uint64_t incarnation, uint64_t sequence, const std::vector<std::byte>& read);
  void Refused(QueuePairId id, uint64_t incarnation, uint64_t sequence, Status status);
  void Missed(QueuePairId id, uint64_t incarnation, uint64_t sequence);
  void NotReady(QueuePairId id, uint64_t incarnation, uint64_t sequence, Nanos wait);
  // The request at the head fails, and the queue pair with it.
  void Fail(FakeQueuePair* pair, Status status);
  // The target.
  void Arrive(const Packet& packet);
  void Deliver(FakeQueuePair* target, const Packet& packet);
  // Something that arrives at `when`: perhaps again later, as a switch may keep what was sent again meanwhile.
  void Carry(Nanos when, const std::function<void()>& arrives);
  void Answer(const Packet& packet, std::function<void(QueuePairId, uint64_t)> what);
  void Place(FakeQueuePair* target, const FakeRegion* region, std::byte* to, std::vector<std::byte> bytes);
  // Now, instead of later: those that the filter names.
  void FinishPlacements(const std::function<bool(const Placement&)>& filter);
  void RunPlacement(uint64_t number);
  void RunDeliveries(FakeQueuePair* pair);

  void ToError(FakeQueuePair* pair);
  void FlushReceives(FakeQueuePair* pair);
  bool IsRxe(const FakeQueuePair& pair);
  void Complete(CompletionQueueId queue, const FakeCompletion& completion);
  void BreakQueue(CompletionQueueId queue);
  std::vector<FakeQueuePair*> PairsBetween(const FakePortName& port, const FakePortName& other);

  FakeTime* const time_;
  std::map<std::pair<int, std::string>, FakeDevice> devices_;
  std::map<int, std::function<void()>> wakes_;
  uint64_t last_id_ = 0;
  std::map<ContextId, FakeContext> contexts_;
  std::map<DomainId, ContextId> domains_;
  std::map<MemoryRegionId, FakeRegion> regions_;
  std::map<ContextId, std::vector<uint32_t>> free_keys_;
  std::map<CompletionChannelId, int> channels_;  // -> events
  std::map<CompletionQueueId, FakeCompletionQueue> queues_;
  std::map<QueuePairId, FakeQueuePair> pairs_;
  std::map<uint64_t, Placement> placements_;
  int hangs_ = 0;
  int late_placements_ = 0;
};

}  // namespace r2cc::verbs

#endif  // R2CC_BASE_CORE_VERBS_FAKE_FABRIC_H_
