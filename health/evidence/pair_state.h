// The state of a pair: a NIC of this node and one of another, as the probes between them show it. A (state, event) table.
//
//   UNKNOWN --answer--> UP <--> LATE --silence--> SILENT --answer--> PROVING --proved--> UP
#ifndef R2CC_HEALTH_EVIDENCE_PAIR_STATE_H_
#define R2CC_HEALTH_EVIDENCE_PAIR_STATE_H_

#include <compare>
#include <cstdint>

#include "health/evidence/evidence.h"

namespace r2cc::health {

// Rail pairs are undirected: a probe goes there and back. `own` is the NIC of the node whose daemon probes.
struct PairKey {
  NicKey own;
  NicKey peer;

  friend auto operator<=>(const PairKey&, const PairKey&) = default;
};

enum class PairState : uint8_t {
  kUnknown,  // never answered
  kUp,
  kLate,     // a probe is overdue although the peer answers on other pairs; still counts as answering
  kSilent,   // several are, for a while
  kProving,  // answers again; still counts as silent
};
constexpr int kPairStates = 5;

enum class PairEvent : uint8_t {
  kAnswer,
  kMiss,     // a probe is overdue
  kSilence,  // enough are
  kProved,
  kReset,  // one end's link went down, so the probes show nothing
};
constexpr int kPairEvents = 5;

// A cell that cannot happen ends the process.
PairState NextPairState(PairState state, PairEvent event);

const char* PairStateName(PairState state);

// The result of a pair for code that compares pairs.
enum class PairVerdict : uint8_t { kUnknown, kAnswering, kSilent };
PairVerdict VerdictOf(PairState state);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_EVIDENCE_PAIR_STATE_H_
