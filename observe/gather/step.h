// One step on a device: decide, copy, arrive, publish. The kernels, and the fake device that steps blocks in any order, run this code.
// `Ops` has, beside what operators.h needs, FenceDevice(), FenceSystem(), AtomicAdd(address, value) and LoadSystem(address).
#ifndef R2CC_OBSERVE_GATHER_STEP_H_
#define R2CC_OBSERVE_GATHER_STEP_H_

#include <cstddef>
#include <cstdint>

#include "observe/admission/admission.h"
#include "observe/gather/operators.h"
#include "observe/record/mutant.h"
#include "observe/record/record.h"

namespace r2cc::observe {

// So many records lie in a device's ring at most; the directory has a place for each.
constexpr uint64_t kDirectoryEntries = 64;

struct DirectoryEntry {
  uint64_t step;
  uint64_t begin;  // in the device's ring, counted from the start
  uint64_t bytes;  // 0: a stub, which takes no room in the ring
  uint64_t hold;   // of a stub
  uint64_t groups;
  uint64_t unwanted;
};

// In host memory that the device writes.
struct Published {
  uint64_t records;  // all below are whole, with their entries: the one word that is released
  uint64_t dropped, unwanted;
  DirectoryEntry directory[kDirectoryEntries];  // by sequence
};

// In the device's memory.
struct DeviceState {
  StepState state;
  uint64_t arrived;
};

struct StepTap {
  TapWork work;
  uint8_t group;
  uint8_t is_tag;
  uint8_t at_point;  // copied before the step's end, by a launch of its own
  uint8_t rows;      // by the step's list
};

struct StepParameters {
  const StepTap* taps;
  uint32_t count;
  uint32_t layout;
  uint32_t blocks;
  uint16_t producer;
  Phase phase;
  RowList rows;
  uint64_t hold;  // not 0: a stub
  uint64_t groups_at_launch;
  // Addresses.
  uint64_t state, published, ring;
  uint64_t host_words;  // those of all producers; this one's are at its number
  uint64_t ring_bytes;
};

inline R2CC_OBSERVE_BOTH bool IsOn(const StepTap& tap, uint64_t groups) { return tap.is_tag != 0 || (groups >> tap.group & 1) != 0; }

inline R2CC_OBSERVE_BOTH uint64_t BytesInRecord(const StepTap& tap, const RowList& rows) {
  return OutputBytes(tap.work, tap.rows != 0 ? rows.count : 1);
}

// Where the first `taps` of a record end: the next one begins there.
inline R2CC_OBSERVE_BOTH uint64_t EndOf(const StepParameters& p, uint64_t groups, uint32_t taps) {
  uint64_t end = sizeof(RecordHeader);
  for (uint32_t i = 0; i < taps; ++i)
    if (IsOn(p.taps[i], groups)) end = RoundUp(end + BytesInRecord(p.taps[i], p.rows), kTapAlignment);
  return end;
}

template <typename T, typename Ops>
R2CC_OBSERVE_BOTH T LoadWords(Ops* ops, uint64_t at) {
  uint64_t words[sizeof(T) / 8];
  for (uint64_t i = 0; i < sizeof(T) / 8; ++i) words[i] = ops->template Load<uint64_t>(at + i * 8);
  T value;
  memcpy(&value, words, sizeof(value));
  return value;
}

template <typename T, typename Ops>
R2CC_OBSERVE_BOTH void StoreWords(Ops* ops, uint64_t at, const T& value) {
  uint64_t words[sizeof(T) / 8];
  memcpy(words, &value, sizeof(value));
  for (uint64_t i = 0; i < sizeof(T) / 8; ++i) ops->template Store<uint64_t>(at + i * 8, words[i]);
}

struct StepPlan {
  StepState state;
  Decision decision;
  uint64_t bytes = 0;  // that the record takes in the ring
};

// What all blocks of a step decide alike.
template <typename Ops>
R2CC_OBSERVE_BOTH StepPlan PlanOf(Ops* ops, const StepParameters& p) {
  StepPlan plan;
  plan.state = LoadWords<StepState>(ops, p.state + offsetof(DeviceState, state));
  plan.bytes = p.hold != 0 ? 0 : RecordBytes(EndOf(p, plan.state.words.groups, p.count));
  plan.decision = Decide(plan.state, p.phase, plan.bytes, p.ring_bytes, kDirectoryEntries);
  return plan;
}

template <typename Ops>
R2CC_OBSERVE_BOTH void CopyTap(Ops* ops, const StepParameters& p, const StepPlan& plan, uint32_t i) {
  const uint64_t groups = plan.state.words.groups;
  const StepTap& tap = p.taps[i];
  if (plan.decision.verdict != Verdict::kTake || p.hold != 0 || !IsOn(tap, groups)) return;
  const uint64_t placed_by = IsActive(Mutant::kOldMask) ? p.groups_at_launch : groups;
  const RowList one;
  GatherTap(ops, tap.work, tap.rows != 0 ? p.rows : one, p.ring + plan.decision.begin % p.ring_bytes + EndOf(p, placed_by, i));
}

// The block's share of the taps that are copied at the step's end.
template <typename Ops>
R2CC_OBSERVE_BOTH void CopyShare(Ops* ops, const StepParameters& p, const StepPlan& plan, uint32_t block) {
  for (uint32_t i = block; i < p.count; i += p.blocks)
    if (p.taps[i].at_point == 0) CopyTap(ops, p, plan, i);
}

// True for the block that has to publish.
template <typename Ops>
R2CC_OBSERVE_BOTH bool Arrive(Ops* ops, const StepParameters& p) {
  ops->FenceDevice();
  const uint64_t last = IsActive(Mutant::kPublishedEarly) && p.blocks > 1 ? p.blocks - 2 : p.blocks - 1;
  return ops->AtomicAdd(p.state + offsetof(DeviceState, arrived), 1) == last;
}

template <typename Ops>
R2CC_OBSERVE_BOTH void WriteEnds(Ops* ops, const StepParameters& p, const StepPlan& plan, uint64_t time_ns) {
  const StepState& state = plan.state;
  if (plan.decision.pad != 0) {
    RecordHeader pad{};
    pad.magic = kRecordMagic;
    pad.version = kRecordVersion;
    pad.kind = static_cast<uint8_t>(RecordKind::kPad);
    pad.bytes = plan.decision.pad;
    StoreWords(ops, p.ring + state.head % p.ring_bytes, pad);
  }
  RecordHeader header{};
  header.magic = kRecordMagic;
  header.version = kRecordVersion;
  header.kind = static_cast<uint8_t>(RecordKind::kRecord);
  header.producer = p.producer;
  header.step = state.step;
  header.sequence = state.sequence;
  header.bytes = plan.bytes;
  header.groups = state.words.groups;
  header.time_ns = time_ns;
  header.layout = IsActive(Mutant::kOldLayout) && state.sequence != 0 ? static_cast<uint32_t>(state.layout) : p.layout;
  header.rows = static_cast<uint32_t>(p.rows.count);
  header.parts = 1;
  header.unwanted = static_cast<uint32_t>(state.unwanted);
  const RecordTrailer trailer{kTrailerMagic, 0, header.step, header.sequence, header.bytes};
  const uint64_t at = p.ring + plan.decision.begin % p.ring_bytes;
  StoreWords(ops, at, header);
  if (!IsActive(Mutant::kNoTrailer)) StoreWords(ops, at + plan.bytes - sizeof(trailer), trailer);
}

// By the last block: the record's ends, its entry, the words for the next step, and last the count that says that all is there.
template <typename Ops>
R2CC_OBSERVE_BOTH void Publish(Ops* ops, const StepParameters& p, uint64_t time_ns) {
  const StepPlan plan = PlanOf(ops, p);
  StepState after = plan.state;
  Advance(&after, plan.decision, plan.bytes);
  if (plan.decision.verdict == Verdict::kTake) {
    if (p.hold == 0) WriteEnds(ops, p, plan, time_ns);
    after.layout = p.layout;
    const DirectoryEntry entry{plan.state.step, plan.decision.begin, plan.bytes, p.hold, plan.state.words.groups, plan.state.unwanted};
    const uint64_t place = plan.state.sequence % kDirectoryEntries;
    StoreWords(ops, p.published + offsetof(Published, directory) + place * sizeof(entry), entry);
  }
  const uint64_t own = p.host_words + (IsActive(Mutant::kOtherTail) ? 0 : p.producer) * sizeof(HostWords);
  uint64_t words[sizeof(HostWords) / 8];
  for (uint64_t i = 0; i < sizeof(HostWords) / 8; ++i) words[i] = ops->LoadSystem(own + i * 8);
  memcpy(&after.words, words, sizeof(words));
  StoreWords(ops, p.state + offsetof(DeviceState, state), after);
  ops->template Store<uint64_t>(p.state + offsetof(DeviceState, arrived), 0);
  ops->template Store<uint64_t>(p.published + offsetof(Published, dropped), after.dropped);
  ops->template Store<uint64_t>(p.published + offsetof(Published, unwanted), after.unwanted);
  if (IsActive(Mutant::kDeviceScopeRelease))
    ops->FenceDevice();
  else
    ops->FenceSystem();
  ops->template Store<uint64_t>(p.published + offsetof(Published, records), after.sequence);
}

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_GATHER_STEP_H_
