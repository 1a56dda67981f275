#include "health/evidence/pair_state.h"

#include "base/core/check.h"

namespace r2cc::health {
namespace {

constexpr PairState kUnknown = PairState::kUnknown;
constexpr PairState kUp = PairState::kUp;
constexpr PairState kLate = PairState::kLate;
constexpr PairState kSilent = PairState::kSilent;
constexpr PairState kProving = PairState::kProving;
constexpr auto kNever = static_cast<PairState>(0xff);

// A pair that never answered cannot fall silent: perhaps nobody ever listened there. Silence follows a miss, and proof an answer.
// clang-format off
constexpr PairState kTable[kPairEvents][kPairStates] = {
    //             UNKNOWN    UP        LATE      SILENT    PROVING
    /* answer  */ {kUp,       kUp,      kUp,      kProving, kProving},
    /* miss    */ {kUnknown,  kLate,    kLate,    kSilent,  kSilent},
    /* silence */ {kNever,    kNever,   kSilent,  kNever,   kNever},
    /* proved  */ {kNever,    kNever,   kNever,   kNever,   kUp},
    /* reset   */ {kUnknown,  kUnknown, kUnknown, kUnknown, kUnknown},
};
// clang-format on

}  // namespace

PairState NextPairState(PairState state, PairEvent event) {
  const int row = static_cast<int>(event);
  const int column = static_cast<int>(state);
  R2CC_CHECK(row >= 0 && row < kPairEvents && column >= 0 && column < kPairStates);
  R2CC_CHECK(kTable[row][column] != kNever);
  return kTable[row][column];
}

const char* PairStateName(PairState state) {
  switch (state) {
    case PairState::kUnknown: return "unknown";
    case PairState::kUp: return "up";
    case PairState::kLate: return "late";
    case PairState::kSilent: return "silent";
    case PairState::kProving: return "proving";
  }
  return "unknown";
}

PairVerdict VerdictOf(PairState state) {
  switch (state) {
    case PairState::kUnknown: return PairVerdict::kUnknown;
    case PairState::kUp:
    case PairState::kLate: return PairVerdict::kAnswering;
    case PairState::kSilent:
    case PairState::kProving: return PairVerdict::kSilent;
  }
  return PairVerdict::kUnknown;
}

}  // namespace r2cc::health
