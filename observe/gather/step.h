// One step on a device: decide, copy, arrive, publish. The kernels, and the fake device that steps blocks in any order, run this code.
// `Ops` has, in addition to what operators.h needs, FenceDevice(), FenceSystem() and LoadSystem(address).
#ifndef R2CC_OBSERVE_GATHER_STEP_H_
#define R2CC_OBSERVE_GATHER_STEP_H_

#include <cstddef>
#include <cstdint>

#include "observe/admission/admission.h"
#include "observe/gather/operators.h"
#include "observe/record/mutant.h"
#include "observe/record/record.h"

namespace r2cc::observe {

// The most records that lie in a device's ring; the directory has a place for each.
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
  uint64_t held;                                // stubs up to this one have their outcome; released after the records that they may be
  uint64_t faults;                              // steps among the unwanted whose rows were beyond their tensors, or too many
  DirectoryEntry directory[kDirectoryEntries];  // by sequence
};

// In the device's memory.
struct DeviceState {
  StepState state;
  uint64_t arrived;
  uint64_t row_faults;  // in the step that goes on
  uint64_t faults;
};

// The device's permanent copy of each tag and tap of a layout, tags first: enough to place them for any set of groups.
struct LayoutEntry {
  uint64_t bytes;  // that the record has of it; of one row if kRows
  uint64_t flags;

  static constexpr uint64_t kGroup = 0xff, kTag = 0x100, kRows = 0x200;
};

// The sum of a hash while its blocks add to it; 0 between steps.
struct HashSum {
  uint64_t sum;
  uint64_t to;  // where the record has it
};

struct StepTap {
  TapWork work;
  uint32_t entry;        // its number among the layout's
  uint32_t first_chunk;  // of the launch
  uint8_t group;
  uint8_t is_tag;
  uint8_t rows;  // by the step's list
  // Its place in a record that has all groups, in units of kTapAlignment; counts only if the step is `linear`.
  uint32_t fixed, for_each_row;
};

// One launch: taps that are copied at the step's end, or at their point.
struct StepParameters {
  const StepTap* taps;  // of this launch
  uint32_t count;
  uint32_t chunks;  // of these taps
  uint64_t chunk_bytes;
  uint32_t layout;
  uint32_t blocks;  // that arrive in the step, those of all its launches
  uint16_t producer;
  uint8_t linear;     // offsets of a record that has all groups are fixed + rows * for_each_row
  uint8_t abandoned;  // 1: the step did not end; 2: it found no room before it was launched
  Phase phase;
  RowList rows;
  uint64_t rows_most;
  uint64_t count_at, count_bytes;  // an address of the rows' count, which is that of `rows` if this is 0
  uint64_t kept_rows;              // an address: where KeepRows() puts count and indices
  uint64_t hold;                   // not 0: a stub
  uint64_t block_ns;               // a step waits at most so long for room
  uint64_t groups_at_launch;
  uint64_t all_groups;  // of the layout's taps
  uint64_t end_fixed, end_for_each_row;
  uint64_t entries, entry_count;  // of the layout: an address, and how many
  uint64_t hash_count;            // entries that are hashes
  // Addresses.
  uint64_t state, published, ring;
  uint64_t hashes;      // a HashSum for each entry
  uint64_t host_words;  // those of all producers; this one's are at its number
  uint64_t ring_bytes;
};

inline R2CC_OBSERVE_BOTH bool IsOn(uint64_t flags, uint64_t groups) {
  return (flags & LayoutEntry::kTag) != 0 || (groups >> (flags & LayoutEntry::kGroup) & 1) != 0;
}

// The end of the first `entries` of a record: the next one begins there. All lanes compute it together.
template <typename Ops>
R2CC_OBSERVE_BOTH uint64_t EndOf(Ops* ops, const StepParameters& p, uint64_t groups, uint64_t rows, uint64_t entries) {
  static_assert(sizeof(RecordHeader) % kTapAlignment == 0);
  uint64_t sum = 0;
  for (uint64_t i = ops->Lane(); i < entries; i += ops->Lanes()) {
    const uint64_t at = p.entries + i * sizeof(LayoutEntry);
    const uint64_t bytes = ops->template Load<uint64_t>(at), flags = ops->template Load<uint64_t>(at + 8);
    if (IsOn(flags, groups)) sum += RoundUp(((flags & LayoutEntry::kRows) != 0 ? rows : 1) * bytes, kTapAlignment);
  }
  return sizeof(RecordHeader) + ops->Reduce(sum);
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

// When a step begins: its rows' count and their indices to `kept_rows`, as words, for all launches of the step. A program that changes
// its own meanwhile changes later steps: launches that read different counts would place one record in two ways.
template <typename Ops>
R2CC_OBSERVE_BOTH void KeepRows(Ops* ops, const StepParameters& p) {
  const uint64_t count = p.count_at != 0 ? LoadIndex(ops, p.count_at, p.count_bytes) : p.rows.count;
  ops->template Store<uint64_t>(p.kept_rows, count);
  if (p.rows.indices == 0 || count > p.rows_most) return;
  for (uint64_t i = ops->Lane(); i < count; i += ops->Lanes())
    ops->StoreAlone(p.kept_rows + (i + 1) * 8, LoadIndex(ops, p.rows.indices + i * p.rows.index_bytes, p.rows.index_bytes));
}

// Whether the rows must be kept: they lie where the program may change them within the step.
inline R2CC_OBSERVE_BOTH bool MustKeepRows(const StepParameters& p) { return p.count_at != 0 || p.rows.indices != 0; }

// For the launches behind KeepRows().
inline R2CC_OBSERVE_BOTH void UseKeptRows(StepParameters* p) {
  if (IsActive(TapMutant::kRowsReadLate)) return;
  if (p->count_at != 0) {
    p->count_at = p->kept_rows;
    p->count_bytes = 8;
  }
  if (p->rows.indices != 0) {
    p->rows.indices = p->kept_rows + 8;
    p->rows.index_bytes = 8;
  }
}

struct StepPlan {
  StepState state;
  Decision decision;
  uint64_t bytes = 0;  // that the record takes in the ring
  uint64_t end = 0;    // of its taps
  uint64_t rows = 0;
  bool whole = false;  // it has all groups, and the parameters' offsets
  bool faulty = false;
};

template <typename Ops>
R2CC_OBSERVE_BOTH StepPlan PlanWith(Ops* ops, const StepParameters& p, const StepState& state) {
  StepPlan plan;
  plan.state = state;
  plan.rows = p.count_at != 0 ? LoadIndex(ops, p.count_at, p.count_bytes) : p.rows.count;
  plan.faulty = plan.rows > p.rows_most;
  const uint64_t groups = plan.state.words.groups;
  if (p.abandoned == 1 || plan.faulty || !Wanted(plan.state.step, p.phase, plan.state.words)) {
    plan.decision = {Verdict::kUnwanted, 0, plan.state.head};
    return plan;
  }
  if (p.abandoned == 2) {
    plan.decision = {Verdict::kDrop, 0, plan.state.head};
    return plan;
  }
  if (p.hold == 0) {
    plan.whole = p.linear != 0 && (groups & p.all_groups) == p.all_groups;
    plan.end = plan.whole ? p.end_fixed + plan.rows * p.end_for_each_row : EndOf(ops, p, groups, plan.rows, p.entry_count);
    plan.bytes = RecordBytes(plan.end);
  }
  plan.decision = Decide(plan.state, p.phase, plan.bytes, p.ring_bytes, kDirectoryEntries);
  return plan;
}

// The decisions that are equal in all blocks of a step.
template <typename Ops>
R2CC_OBSERVE_BOTH StepPlan PlanOf(Ops* ops, const StepParameters& p) {
  return PlanWith(ops, p, LoadWords<StepState>(ops, p.state + offsetof(DeviceState, state)));
}

template <typename Ops>
R2CC_OBSERVE_BOTH HostWords LoadHostWords(Ops* ops, const StepParameters& p) {
  const uint64_t own = p.host_words + (IsActive(TapMutant::kOtherTail) ? 0 : p.producer) * sizeof(HostWords);
  uint64_t words[sizeof(HostWords) / 8];
  for (uint64_t i = 0; i < sizeof(HostWords) / 8; ++i) words[i] = ops->LoadSystem(own + i * 8);
  HostWords result;
  memcpy(&result, words, sizeof(words));
  return result;
}

// One look of a step that waits for room, by a kernel of one thread before all others of the step. True: there is room, or the step is not
// wanted; then the step decides by what was seen here.
template <typename Ops>
R2CC_OBSERVE_BOTH bool LookForRoom(Ops* ops, const StepParameters& p) {
  StepState state = LoadWords<StepState>(ops, p.state + offsetof(DeviceState, state));
  state.words = LoadHostWords(ops, p);
  if (PlanWith(ops, p, state).decision.verdict == Verdict::kDrop && p.abandoned == 0) return false;
  StoreWords(ops, p.state + offsetof(DeviceState, state) + offsetof(StepState, words), state.words);
  return true;
}

template <typename Ops>
R2CC_OBSERVE_BOTH uint64_t OffsetOf(Ops* ops, const StepParameters& p, const StepPlan& plan, const StepTap& tap) {
  if (plan.whole) return (tap.fixed + plan.rows * tap.for_each_row) * kTapAlignment;
  return EndOf(ops, p, IsActive(TapMutant::kOldMask) ? p.groups_at_launch : plan.state.words.groups, plan.rows, tap.entry);
}

// The most chunks of a tap. A chunk is the work of a block at a time.
constexpr R2CC_OBSERVE_BOTH uint64_t ChunksOf(const TapWork& work, uint64_t rows_most, uint64_t chunk_bytes) {
  const uint64_t chunks = work.op == Operator::kStats ? rows_most : (rows_most * work.RowBytes() + chunk_bytes - 1) / chunk_bytes;
  return chunks == 0 ? 1 : chunks;
}

// Part `chunk` of a tap that is on, to `to`.
template <typename Ops>
R2CC_OBSERVE_BOTH void CopyPart(Ops* ops, const StepParameters& p, const StepTap& tap, const RowList& list, uint64_t chunk, uint64_t to) {
  const uint64_t bytes = list.count * tap.work.RowBytes(), begin = chunk * p.chunk_bytes;
  const uint64_t end = begin + p.chunk_bytes < bytes ? begin + p.chunk_bytes : bytes;
  if (tap.work.op == Operator::kStats) {
    if (chunk < list.count) StatsOfRow(ops, tap.work, list, chunk, to);
  } else if (tap.work.op == Operator::kHash) {
    const uint64_t size = BytesOf(tap.work.dtype), at = p.hashes + tap.entry * sizeof(HashSum);
    const uint64_t sum = ops->Reduce(HashOfElements(ops, tap.work, list, begin / size, end / size));
    if (ops->Lane() == 0) ops->AtomicAdd(at, sum);
    ops->template Store<uint64_t>(at + offsetof(HashSum, to), to);
  } else {
    CopyBytes(ops, tap.work, list, begin, end, to);
  }
  // Nothing of the ring's former content is left between two taps.
  if (chunk != 0) return;
  uint64_t hole = OutputBytes(tap.work, list.count);
  for (; hole % 8 != 0; ++hole) ops->template Store<uint8_t>(to + hole, 0);
  for (; hole % kTapAlignment != 0; hole += 8) ops->template Store<uint64_t>(to + hole, 0);
}

// The tap, among the `count` taps of a launch, that has the chunk: the last one that begins there or before.
template <typename T>
R2CC_OBSERVE_BOTH uint32_t TapOfChunk(const T* taps, uint32_t count, uint32_t chunk) {
  uint32_t low = 0, high = count;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (taps[middle].first_chunk <= chunk)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// The block's share of a launch of `blocks`.
template <typename Ops>
R2CC_OBSERVE_BOTH void CopyShare(Ops* ops, const StepParameters& p, const StepPlan& plan, uint32_t block, uint32_t blocks) {
  if (plan.decision.verdict != Verdict::kTake || p.hold != 0) return;
  const uint64_t groups = plan.state.words.groups;
  for (uint32_t chunk = block; chunk < p.chunks; chunk += blocks) {
    const StepTap& tap = p.taps[TapOfChunk(p.taps, p.count, chunk)];
    if (tap.is_tag == 0 && (groups >> tap.group & 1) == 0) continue;
    RowList list;
    if (tap.rows != 0) {
      list = p.rows;
      list.count = plan.rows;
      list.faults = p.state + offsetof(DeviceState, row_faults);
    }
    CopyPart(ops, p, tap, list, chunk - tap.first_chunk, p.ring + plan.decision.begin % p.ring_bytes + OffsetOf(ops, p, plan, tap));
  }
}

// True for the block that has to publish.
template <typename Ops>
R2CC_OBSERVE_BOTH bool Arrive(Ops* ops, const StepParameters& p) {
  ops->FenceDevice();
  const uint64_t last = IsActive(TapMutant::kPublishedEarly) && p.blocks > 1 ? p.blocks - 2 : p.blocks - 1;
  return ops->AtomicAdd(p.state + offsetof(DeviceState, arrived), 1) == last;
}

// The sums of the hashes to where the record has them, in shares of the lanes of the block that publishes, before it does.
template <typename Ops>
R2CC_OBSERVE_BOTH void FinishHashes(Ops* ops, const StepParameters& p, const StepPlan& plan) {
  if (p.hash_count == 0 || plan.decision.verdict != Verdict::kTake || p.hold != 0) return;
  for (uint64_t i = ops->Lane(); i < p.entry_count; i += ops->Lanes()) {
    const uint64_t at = p.hashes + i * sizeof(HashSum), to = ops->template Load<uint64_t>(at + offsetof(HashSum, to));
    if (to == 0) continue;
    ops->StoreAlone(to, ops->template Load<uint64_t>(at));
    ops->StoreAlone(at, 0);
    ops->StoreAlone(at + offsetof(HashSum, to), 0);
  }
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
  header.layout = IsActive(TapMutant::kOldLayout) && state.sequence != 0 ? static_cast<uint32_t>(state.layout) : p.layout;
  header.rows = static_cast<uint32_t>(plan.rows);
  header.parts = 1;
  header.unwanted = static_cast<uint32_t>(state.unwanted);
  const RecordTrailer trailer{kTrailerMagic, 0, header.step, header.sequence, header.bytes};
  const uint64_t at = p.ring + plan.decision.begin % p.ring_bytes;
  StoreWords(ops, at, header);
  for (uint64_t i = plan.end; i < plan.bytes - sizeof(trailer); i += 8) ops->template Store<uint64_t>(at + i, 0);
  if (!IsActive(TapMutant::kNoTrailer)) StoreWords(ops, at + plan.bytes - sizeof(trailer), trailer);
}

// By the first lane of the last block, with the plan by which it copied: the record's ends, its entry, the words for the next step, and
// last the count that shows that all is there.
template <typename Ops>
R2CC_OBSERVE_BOTH void Publish(Ops* ops, const StepParameters& p, StepPlan plan, uint64_t time_ns) {
  const HostWords words = LoadHostWords(ops, p);  // first: the host's memory is far
  const uint64_t row_faults = ops->template Load<uint64_t>(p.state + offsetof(DeviceState, row_faults));
  if (row_faults != 0) {
    plan.faulty = true;
    plan.decision = {Verdict::kUnwanted, 0, plan.state.head};
    ops->template Store<uint64_t>(p.state + offsetof(DeviceState, row_faults), 0);
  }
  if (plan.faulty) {
    const uint64_t faults = ops->template Load<uint64_t>(p.state + offsetof(DeviceState, faults)) + 1;
    ops->template Store<uint64_t>(p.state + offsetof(DeviceState, faults), faults);
    ops->template Store<uint64_t>(p.published + offsetof(Published, faults), faults);
  }
  StepState after = plan.state;
  Advance(&after, plan.decision, plan.bytes);
  if (plan.decision.verdict == Verdict::kTake) {
    if (p.hold == 0) WriteEnds(ops, p, plan, time_ns);
    after.layout = p.layout;
    const DirectoryEntry entry{plan.state.step, plan.decision.begin, plan.bytes, p.hold, plan.state.words.groups, plan.state.unwanted};
    const uint64_t place = plan.state.sequence % kDirectoryEntries;
    StoreWords(ops, p.published + offsetof(Published, directory) + place * sizeof(entry), entry);
  }
  after.words = words;
  StoreWords(ops, p.state + offsetof(DeviceState, state), after);
  ops->template Store<uint64_t>(p.state + offsetof(DeviceState, arrived), 0);
  ops->template Store<uint64_t>(p.published + offsetof(Published, dropped), after.dropped);
  ops->template Store<uint64_t>(p.published + offsetof(Published, unwanted), after.unwanted);
  if (IsActive(TapMutant::kHeldBeforeRecords) && p.hold != 0)
    ops->template Store<uint64_t>(p.published + offsetof(Published, held), p.hold);
  if (IsActive(TapMutant::kDeviceScopeRelease))
    ops->FenceDevice();
  else
    ops->FenceSystem();
  ops->template Store<uint64_t>(p.published + offsetof(Published, records), after.sequence);
  if (p.hold != 0) {
    ops->FenceSystem();
    ops->template Store<uint64_t>(p.published + offsetof(Published, held), p.hold);
  }
}

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_GATHER_STEP_H_
