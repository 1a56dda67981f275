// The evidence ring: what a job's plugin saw on its rails, on its way to the daemon. One producer (the plugin), one consumer (the
// daemon), in a memfd that the daemon makes and seals (SHRINK, GROW, SEAL). The daemon trusts nothing in it: it copies a record
// before it validates it, clamps the indices, and drops what is garbled. A full ring drops the newest record and counts it.
#ifndef R2CC_PLAN_PAGE_RING_H_
#define R2CC_PLAN_PAGE_RING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"

namespace r2cc::plan {

constexpr uint64_t kRingMagic = 0x5232'4343'5249'4e47;  // "R2CCRING"
constexpr uint32_t kRingVersion = 1;
constexpr uint32_t kRingRecords = 4096;

// The numbers are part of the ring format. A kind that a reader does not know is garbled to it: skipped and counted, and nothing else
// happens. So a kind added at the end, in the fields that there are, needs no new version of the ring.
enum class EvidenceRecordKind : uint32_t {
  kLinkFenced = 1,  // an incarnation of a link was given up; replayed_bytes, duration_ns: from the first sign to the replay's start
  kLinkUp = 2,      // an incarnation of a link carries data
  kRailTotals = 3,  // about once a second, for local_rail: bytes sent (bytes), received (received_bytes), replayed since the start
  kFlowOpened = 4,  // first flow to peer_node
  kRailSlow = 5,    // local_rail moves far less than the job's best rail: share_permille of it; again about once a second while it lasts
  kRailSteady = 6,  // it does no longer; share_permille: what it moves now
  // The job gave up on peer_node, duration_ns after the last rail had reached it. One record a rail: why it does not reach peer_nic, since
  // when (time_ns), and whose port is dead (bytes: DeadPort in gave_up.h). A job without facts about its rails writes one record, with
  // bytes = kNoRail.
  kGaveUp = 7,
  // An incarnation of a link never carried data: it failed its data check, or the peer did not complete the handshake. At most one
  // record a second and link. cause: kStalled, kLargeLost, kSilence or kSocketError. Unknown to 0.2.0.
  kProofFailed = 8,
  // The kinds below are unknown to 0.2.0.
  // An incarnation of a link is lost: its data waits from time_ns on. cause; bytes: its detail. kLinkFenced follows when the peer has
  // answered.
  kLinkLost = 9,
  // The flows that a lost incarnation held up have made progress again. duration_ns: the longest gap between two completions of one of
  // these flows, from the last one before the loss on. time_ns: the end of that gap. bytes: nanoseconds from the loss to time_ns of this
  // record.
  kLinkPassed = 10,
  // From time_ns on the process sends over `bytes` rails; replayed_bytes: how many rails it has.
  kRailUse = 11,
  // The run that this process belongs to, once after each attachment. peer_node: the run's id, empty if there is none. bytes: the rank + 1,
  // 0 if it is unknown. replayed_bytes: 1 if all nodes of the job have the same id. time_ns: when the plugin started.
  kRun = 12,
  // An operation of the job failed. bytes: a Failure; peer_node: the other end.
  kFailed = 13,
  // The process ends in order: by exit(), or by a return from main().
  kEnding = 14,
  // Requests of the job are outstanding, `bytes` of them, and none has made progress for duration_ns. Again about once a second while that
  // lasts, and once with bytes = 0 when it is over. replayed_bytes: the most specific WaitFor; peer_node: its peer. With
  // WaitFor::kRail local_rail and peer_nic are the rail.
  kWaiting = 15,
  // An operation of NCCL waited for local_rail, which the process lost at time_ns, for duration_ns. peer_nic: the function ("AllReduce"),
  // number: which one, from 1, 0: not known; peer_node: the communicator's name; bytes: NCCL's commId; replayed_bytes: HeldRank(). It
  // follows the kLinkPassed of that loss.
  kOperationHeld = 16,
  // The AllReduces of a communicator go by another way from one of its calls on. incarnation: the communicator's number in its process,
  // from 1. bytes: that call. duration_ns: bytes from which on they go that way. replayed_bytes: WayDetail().
  kWay = 17,
};
constexpr EvidenceRecordKind kEvidenceRecordKindNewest = EvidenceRecordKind::kWay;
// The newest kind that a daemon of release 0.2.0 knows, whose rings do not name it.
constexpr EvidenceRecordKind kEvidenceRecordKindOf020 = EvidenceRecordKind::kGaveUp;

// Why an operation of a job failed. The numbers are part of the ring's format.
enum class Failure : uint64_t {
  kUnknown = 0,
  kPeerGone = 1,    // the peer's process ended: its address refuses connections
  kPeerClosed = 2,  // the peer closed the flow while messages were on their way
  kDeadline = 3,    // R2CC_DEADLINE_MS passed
  kBuffer = 4,      // a message did not fit into the buffer that was posted for it
};
// "its process is gone"; "unknown" for a number out of range.
const char* FailureText(uint64_t failure);

// The reason why requests of a job wait at a peer. The numbers are part of the ring's format; the least is the most specific.
enum class WaitFor : uint64_t {
  kUnknown = 0,
  kRail = 1,     // what one rail carries to the peer is not acknowledged, and nothing else is on its way
  kReach = 2,    // no rail reaches the peer
  kStopped = 3,  // the peer's process answers on no channel, and its kernel does
  kRails = 4,    // what several rails carry to the peer is not acknowledged
  kBuffer = 5,   // the peer has posted no buffer, or its grant is lost
  kData = 6,     // nothing has arrived from the peer
};
constexpr WaitFor kWaitForNewest = WaitFor::kData;
// "what it sent there is not acknowledged"; for a number out of range as for kUnknown.
const char* WaitText(uint64_t what);

// The detail of kWay: a Way of plan/collective/ways.h, and the time that is expected, of the usual one.
constexpr uint64_t WayDetail(uint32_t way, uint32_t expected_permille) { return uint64_t{expected_permille} << 32 | way; }

// A record whose cause its reader does not know is garbled to it, too. So the ring names the newest cause that its reader knows, and the
// writer replaces a newer one by the nearest of those (CauseFor).
enum class EvidenceCause : uint32_t {
  kNone = 0,
  kLinkDown = 1,  // the plugin's own link monitor
  kSocketError = 2,
  kPageNotice = 3,  // the daemon's verdict
  kPeerFenced = 4,  // the other end gave it up
  kSilence = 5,
  kFlowClosed = 6,  // a flow was closed with a chunk half-way
  kGarbled = 7,     // the peer broke the protocol on it
  kSimulated = 8,   // R2CC_FAIL_RAILS
  kRetired = 9,     // a cross-rail link whose rails are in their own links' use again
  // Data given to some connections of the link is not acknowledged while the peer answers elsewhere; bytes: StalledDetail(). Unknown to
  // 0.2.0, as the next one.
  kStalled = 10,
  kLargeLost = 11,  // small packets pass, large ones do not; bytes: the size in bytes above which packets are lost
};
// The detail of kStalled: how many connections of the link stall, and how many it has, its control connection included. An RDMA link has
// one, its queue pair.
constexpr uint64_t StalledDetail(uint32_t stalled, uint32_t connections) { return uint64_t{stalled} << 32 | connections; }
constexpr EvidenceCause kEvidenceCauseNewest = EvidenceCause::kLargeLost;
// The newest cause that a daemon of release 0.2.0 and before knows, whose rings do not name it.
constexpr EvidenceCause kEvidenceCauseOf020 = EvidenceCause::kRetired;

// Whether a NIC that an operator takes away at once can be lost for this cause, at either end.
constexpr bool MayBeOnPurpose(EvidenceCause cause) {
  return cause == EvidenceCause::kPageNotice || cause == EvidenceCause::kPeerFenced || cause == EvidenceCause::kSocketError ||
         cause == EvidenceCause::kSimulated;
}
// How long after a loss this node may learn that an operator of another node caused it. A job ends the link within milliseconds, perhaps
// before the other node's view is here: a daemon sends it at once, and again each 0.5 s. In this time four are due. A longer time would
// hide more real faults that an operator answers with a command.
constexpr Nanos kOnPurposeKnown = 2 * kNanosPerSecond;

// A short lower-case word for a cause ("link-down"); "unknown" for a number out of range.
const char* CauseName(EvidenceCause cause);

// The failure cause of a link, for a person: "its link is down", "one of 4 connections carries nothing". `detail`: bytes.
std::string CauseText(EvidenceCause cause, uint64_t detail);

// `cause` for a reader that knows none after `newest`: kStalled and kLargeLost become kSilence.
EvidenceCause CauseFor(EvidenceCause cause, EvidenceCause newest);

// Records of these kinds carry a running number of their process in received_bytes, from 1. The writer keeps the last ones and puts them
// into each new ring again, so that a daemon that starts later misses none; the reader skips those that it knows. 0: a plugin of 0.2.0.
bool IsNumbered(EvidenceRecordKind kind);

// 144 bytes, no padding. Strings are NUL-terminated (the reader cuts them if they are not) printable ASCII (a record with anything
// else is garbled).
struct EvidenceRecord {
  uint32_t kind;
  uint32_t cause;
  int64_t time_ns;      // CLOCK_MONOTONIC, of the daemon in the ring: the writer converts its own time from another time namespace
  uint32_t local_rail;  // index in the attach request's rails
  union {
    uint32_t incarnation;     // kLinkFenced, kLinkUp, kWay
    uint32_t share_permille;  // kRailSlow, kRailSteady: at most 1000
    uint32_t number;          // kOperationHeld
  };
  uint64_t bytes;
  uint64_t received_bytes;
  uint64_t replayed_bytes;
  uint64_t duration_ns;
  char peer_node[64];
  char peer_nic[24];
};
static_assert(sizeof(EvidenceRecord) == 144);

// For kOperationHeld: the process's rank in the communicator, and its number of ranks; 0: not known.
constexpr uint64_t HeldRank(int32_t rank, int32_t ranks) {
  return uint64_t{static_cast<uint32_t>(rank)} << 32 | static_cast<uint32_t>(ranks);
}
// "AllReduce 4711 of communicator tp0 (rank 3 of 8) for 280.0 ms". `record` is a kOperationHeld with sound texts.
std::string HeldText(const EvidenceRecord& record);

class EvidenceRingReader {
 public:
  // The daemon's end: makes, maps and seals the memory. Null and a line in `error` on failure.
  static std::unique_ptr<EvidenceRingReader> Create(std::string* error);
  ~EvidenceRingReader();
  EvidenceRingReader(const EvidenceRingReader&) = delete;
  EvidenceRingReader& operator=(const EvidenceRingReader&) = delete;

  int fd() const { return fd_; }

  // Takes at most `most` records off the ring, and returns how many; appends those that are valid to `out`. Garbled ones are counted in
  // `garbled()`. Memory that the producer has not written is not allocated. An
  // impossible index counts as one garbled record, and everything up to it is skipped.
  int Take(int most, std::vector<EvidenceRecord>* out);
  uint64_t garbled() const { return garbled_; }
  // Records that the producer dropped because the ring was full, by its own count.
  uint64_t dropped() const;

 private:
  EvidenceRingReader(int fd, void* memory) : fd_(fd), memory_(memory) {}
  int fd_;
  void* memory_;
  uint64_t taken_ = 0;
  uint64_t garbled_ = 0;
};

class EvidenceRingWriter {
 public:
  // The plugin's end: checks size, seals, magic and version, then maps; takes ownership of `fd` in any case.
  static std::unique_ptr<EvidenceRingWriter> Open(int fd, std::string* error);
  ~EvidenceRingWriter();
  EvidenceRingWriter(const EvidenceRingWriter&) = delete;
  EvidenceRingWriter& operator=(const EvidenceRingWriter&) = delete;

  // Never blocks, and believes no index of the other side further than "full"; false if the ring is full (the record is dropped and
  // counted). A cause that the reader does not know becomes one that it knows; a record of a kind that it does not know is left out. One
  // thread at a time.
  bool Put(const EvidenceRecord& record);
  // The reader skips numbered records that it knows: see IsNumbered().
  bool reads_numbers() const { return newest_kind_ > kEvidenceRecordKindOf020; }

 private:
  EvidenceRingWriter(int fd, void* memory);
  int fd_;
  void* memory_;
  EvidenceCause newest_cause_;      // that the reader knows
  EvidenceRecordKind newest_kind_;  // the same
  int64_t to_readers_clock_;
  uint64_t put_;
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_PAGE_RING_H_
