#include "plan/page/ring.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "base/core/shared_memory.h"
#include "plan/model.h"
#include "plan/page/attach.h"
#include "plan/page/clock_offset.h"
#include "plan/page/ring_layout.h"
#include "plan/page/text.h"

namespace r2cc::plan {
namespace {

constexpr SharedKind kRing = {"ring", kRingMagic, kRingVersion, kRingVersion, sizeof(RingLayout), Writable::kByBoth};
static_assert((kRingRecords & (kRingRecords - 1)) == 0, "the counts wrap at 2^64: positions must not jump there");

using Words = uint64_t[kRingRecordWords];
// The records that are read at once.
constexpr uint64_t kBatch = 64;

// The record as values of our own: validated when the producer cannot change it any more.
EvidenceRecord Copy(const Words& words) {
  EvidenceRecord record;
  std::memcpy(&record, words, sizeof(record));
  record.peer_node[sizeof(record.peer_node) - 1] = '\0';
  record.peer_nic[sizeof(record.peer_nic) - 1] = '\0';
  return record;
}

bool SpeaksOfAShare(const EvidenceRecord& record) {
  return record.kind == static_cast<uint32_t>(EvidenceRecordKind::kRailSlow) ||
         record.kind == static_cast<uint32_t>(EvidenceRecordKind::kRailSteady);
}

bool Sound(const EvidenceRecord& record) {
  return record.kind >= static_cast<uint32_t>(EvidenceRecordKind::kLinkFenced) &&
         record.kind <= static_cast<uint32_t>(kEvidenceRecordKindNewest) &&
         (!SpeaksOfAShare(record) || record.share_permille <= kFullWeightPermille) &&
         record.cause <= static_cast<uint32_t>(kEvidenceCauseNewest) && record.time_ns >= 0 && record.local_rail < kAttachRailsMax &&
         SoundText(record.peer_node) && SoundText(record.peer_nic);
}

}  // namespace

const char* CauseName(EvidenceCause cause) {
  switch (cause) {
    case EvidenceCause::kNone: return "none";
    case EvidenceCause::kLinkDown: return "link-down";
    case EvidenceCause::kSocketError: return "socket-error";
    case EvidenceCause::kPageNotice: return "page-notice";
    case EvidenceCause::kPeerFenced: return "peer-fenced";
    case EvidenceCause::kSilence: return "silence";
    case EvidenceCause::kFlowClosed: return "flow-closed";
    case EvidenceCause::kGarbled: return "garbled";
    case EvidenceCause::kSimulated: return "simulated";
    case EvidenceCause::kRetired: return "retired";
    case EvidenceCause::kStalled: return "stalled";
    case EvidenceCause::kLargeLost: return "large-packets-lost";
  }
  return "unknown";
}

std::string CauseText(EvidenceCause cause, uint64_t detail) {
  if (cause == EvidenceCause::kLargeLost && detail > 0) return "packets over " + std::to_string(detail) + " bytes are lost";
  const auto stalled = static_cast<uint32_t>(detail >> 32), connections = static_cast<uint32_t>(detail);
  if (cause == EvidenceCause::kStalled && stalled == 1 && connections == 1) return "its connection carries nothing";
  if (cause == EvidenceCause::kStalled && stalled == 1 && connections > 1)
    return "one of " + std::to_string(connections) + " connections carries nothing";
  if (cause == EvidenceCause::kStalled && stalled > 1 && connections >= stalled)
    return std::to_string(stalled) + " of " + std::to_string(connections) + " connections carry nothing";
  switch (cause) {
    case EvidenceCause::kNone: return "for no reason that is known";
    case EvidenceCause::kLinkDown: return "its link is down";
    case EvidenceCause::kSocketError: return "its connection broke";
    case EvidenceCause::kPageNotice: return "r2ccd took it out of use";
    case EvidenceCause::kPeerFenced: return "the other end gave it up";
    case EvidenceCause::kSilence: return "the other end does not answer on it";
    case EvidenceCause::kFlowClosed: return "the job closed it";
    case EvidenceCause::kGarbled: return "what arrived on it is damaged";
    case EvidenceCause::kSimulated: return "simulated";
    case EvidenceCause::kRetired: return "it is not needed any more";
    case EvidenceCause::kStalled: return "some of its connections carry nothing";
    case EvidenceCause::kLargeLost: return "large packets are lost";
  }
  return "unknown";
}

EvidenceCause CauseFor(EvidenceCause cause, EvidenceCause newest) {
  return cause > newest && cause <= kEvidenceCauseNewest ? EvidenceCause::kSilence : cause;
}

const char* FailureText(uint64_t failure) {
  switch (static_cast<Failure>(failure)) {
    case Failure::kUnknown: return "unknown";
    case Failure::kPeerGone: return "its process is gone";
    case Failure::kPeerClosed: return "it closed the connection while messages were on their way";
    case Failure::kDeadline: return "R2CC_DEADLINE_MS passed";
    case Failure::kBuffer: return "a message did not fit into the buffer posted for it";
  }
  return "unknown";
}

const char* WaitText(uint64_t what) {
  switch (static_cast<WaitFor>(what)) {
    case WaitFor::kUnknown: break;
    case WaitFor::kRail:
    case WaitFor::kRails: return "what was sent there is not acknowledged";
    case WaitFor::kReach: return "no rail reaches it";
    case WaitFor::kStopped: return "the process there does not answer: it is stopped or very busy";
    case WaitFor::kBuffer: return "no receive is known to be posted there";
    case WaitFor::kData: return "nothing has arrived from there";
  }
  return "the reason is unknown";
}

bool IsNumbered(EvidenceRecordKind kind) {
  switch (kind) {
    case EvidenceRecordKind::kLinkFenced:
    case EvidenceRecordKind::kGaveUp:
    case EvidenceRecordKind::kLinkLost:
    case EvidenceRecordKind::kLinkPassed:
    case EvidenceRecordKind::kRailUse:
    case EvidenceRecordKind::kFailed:
    case EvidenceRecordKind::kOperationHeld:
    case EvidenceRecordKind::kWay: return true;
    case EvidenceRecordKind::kLinkUp:
    case EvidenceRecordKind::kRailTotals:
    case EvidenceRecordKind::kFlowOpened:
    case EvidenceRecordKind::kRailSlow:
    case EvidenceRecordKind::kRailSteady:
    case EvidenceRecordKind::kProofFailed:
    case EvidenceRecordKind::kRun:
    case EvidenceRecordKind::kEnding:
    case EvidenceRecordKind::kWaiting: return false;
  }
  return false;
}

std::string HeldText(const EvidenceRecord& record) {
  const auto rank = static_cast<uint32_t>(record.replayed_bytes >> 32), ranks = static_cast<uint32_t>(record.replayed_bytes);
  char text[64];
  std::string line = record.peer_nic;
  if (record.number > 0) line += " " + std::to_string(record.number);
  std::snprintf(text, sizeof(text), "%llx", static_cast<unsigned long long>(record.bytes));
  line += std::string(" of communicator ") + (record.peer_node[0] == '\0' ? text : record.peer_node);
  line += " (rank " + std::to_string(rank) + (ranks > 0 ? " of " + std::to_string(ranks) : "") + ")";
  std::snprintf(text, sizeof(text), " for %.1f ms", static_cast<double>(record.duration_ns) / kNanosPerMs);
  return line + text;
}

std::unique_ptr<EvidenceRingReader> EvidenceRingReader::Create(std::string* error) {
  int fd = -1;
  void* memory = nullptr;
  if (!MakeShared(kRing, &fd, &memory, error)) return nullptr;
  StoreRelaxed(&static_cast<RingLayout*>(memory)->newest_cause, static_cast<uint64_t>(kEvidenceCauseNewest));
  StoreRelaxed(&static_cast<RingLayout*>(memory)->newest_kind, static_cast<uint64_t>(kEvidenceRecordKindNewest));
  StoreRelaxed(&static_cast<RingLayout*>(memory)->clock_offset_ns, static_cast<uint64_t>(OwnMonotonicOffset()));
  return std::unique_ptr<EvidenceRingReader>(new EvidenceRingReader(fd, memory));
}

EvidenceRingReader::~EvidenceRingReader() { UnmapShared(kRing, fd_, memory_); }

int EvidenceRingReader::Take(int most, std::vector<EvidenceRecord>* out) {
  auto* ring = static_cast<RingLayout*>(memory_);
  const uint64_t put = LoadAcquire(&ring->put);
  if (put - taken_ > kRingRecords) {
    ++garbled_;
    taken_ = put;
  }
  int taken = 0;
  while (taken_ != put && taken < most) {
    // By a system call and not through the mapping: a ring that claims records and never wrote them is a hole, and a page of a hole that is
    // read through a mapping is allocated, at the reader's expense.
    Words batch[kBatch];
    const uint64_t at = taken_ % kRingRecords;
    const uint64_t count = std::min({put - taken_, static_cast<uint64_t>(most - taken), kBatch, kRingRecords - at});
    const auto bytes = static_cast<ssize_t>(count * sizeof(Words));
    const bool read =
        pread(fd_, batch, static_cast<size_t>(bytes), static_cast<off_t>(offsetof(RingLayout, records) + at * sizeof(Words))) == bytes;
    for (uint64_t i = 0; i < count; ++i) {
      const EvidenceRecord record = read ? Copy(batch[i]) : EvidenceRecord{};
      if (Sound(record))
        out->push_back(record);
      else
        ++garbled_;
    }
    taken_ += count;
    taken += static_cast<int>(count);
  }
  StoreRelease(&ring->taken, taken_);  // release: the producer overwrites only what has been copied
  return taken;
}

uint64_t EvidenceRingReader::dropped() const { return LoadRelaxed(&static_cast<const RingLayout*>(memory_)->dropped); }

std::unique_ptr<EvidenceRingWriter> EvidenceRingWriter::Open(int fd, std::string* error) {
  void* memory = MapShared(kRing, fd, error);
  return memory == nullptr ? nullptr : std::unique_ptr<EvidenceRingWriter>(new EvidenceRingWriter(fd, memory));
}

EvidenceRingWriter::EvidenceRingWriter(int fd, void* memory)
    : fd_(fd),
      memory_(memory),
      newest_cause_(static_cast<EvidenceCause>(std::clamp<uint64_t>(LoadRelaxed(&static_cast<const RingLayout*>(memory)->newest_cause),
                                                                    static_cast<uint64_t>(kEvidenceCauseOf020),
                                                                    static_cast<uint64_t>(kEvidenceCauseNewest)))),
      newest_kind_(static_cast<EvidenceRecordKind>(std::clamp<uint64_t>(LoadRelaxed(&static_cast<const RingLayout*>(memory)->newest_kind),
                                                                        static_cast<uint64_t>(kEvidenceRecordKindOf020),
                                                                        static_cast<uint64_t>(kEvidenceRecordKindNewest)))),
      to_readers_clock_(static_cast<int64_t>(LoadRelaxed(&static_cast<const RingLayout*>(memory)->clock_offset_ns) -
                                             static_cast<uint64_t>(OwnMonotonicOffset()))),
      put_(LoadRelaxed(&static_cast<const RingLayout*>(memory)->put)) {}

EvidenceRingWriter::~EvidenceRingWriter() { UnmapShared(kRing, fd_, memory_); }

bool EvidenceRingWriter::Put(const EvidenceRecord& record) {
  if (record.kind > static_cast<uint32_t>(newest_kind_) && record.kind <= static_cast<uint32_t>(kEvidenceRecordKindNewest)) return true;
  auto* ring = static_cast<RingLayout*>(memory_);
  if (put_ - LoadAcquire(&ring->taken) >= kRingRecords) {
    StoreRelaxed(&ring->dropped, LoadRelaxed(&ring->dropped) + 1);
    return false;
  }
  EvidenceRecord written = record;
  written.cause = static_cast<uint32_t>(CauseFor(static_cast<EvidenceCause>(record.cause), newest_cause_));
  // The sum is defined for any value of the reader; one that makes no sense is no time.
  const bool overflows = __builtin_add_overflow(record.time_ns, to_readers_clock_, &written.time_ns);
  if (record.time_ns >= 0 && (overflows || written.time_ns < 0)) written.time_ns = 0;
  Words words;
  std::memcpy(words, &written, sizeof(written));
  uint64_t* slot = ring->records[put_ % kRingRecords];
  for (size_t i = 0; i < kRingRecordWords; ++i) StoreRelaxed(&slot[i], words[i]);
  StoreRelease(&ring->put, ++put_);
  return true;
}

}  // namespace r2cc::plan
