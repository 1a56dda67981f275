// Keeps one NIC's state: a (state, event) table (nic_table.h) over what is remembered of the NIC. Down fast, up slow; the operator's
// settings are kept next to the physical state. Pure: time is an argument. One thread at a time.
//
//              link down, silence, drill              link up, answers, drill over
//   HEALTHY  --------------------------->  FAILED  ---------------------------->  PROVING --(quiet time)--> HEALTHY
//   HEALTHY <--> DEGRADED (rate, errors)   HEALTHY <--> SUSPECT (complaints; forgotten)   any but FAILED <--> DRAINED
//   PROVING --(no cable)--> UNCABLED --(link up)--> PROVING
#ifndef R2CC_HEALTH_VIEW_NIC_MACHINE_H_
#define R2CC_HEALTH_VIEW_NIC_MACHINE_H_

#include <cstdint>
#include <string>

#include "base/core/clock.h"
#include "base/core/flap_level.h"
#include "health/view/nic_state.h"

namespace r2cc::health {

enum class NicEvent : uint8_t {
  // From outside.
  kLinkUp,
  kLinkDown,
  kImpaired,    // below its due
  kUnimpaired,  // no longer
  kSuspected,   // a complaint
  kForgiven,    // the complaint was explained
  kDrain,
  kUndrain,
  kDrillFail,
  kDrillRestore,
  kSilent,    // the link is up, and nothing comes through it
  kAnswered,  // that is over
  kNoCable,   // the link is down, and it was never up
  // Made by Tick.
  kProved,     // the proof time passed quietly
  kForgotten,  // the last complaint is old
};
constexpr int kNicEvents = 15;

// Lower case ("link-up").
const char* NicEventName(NicEvent event);

struct NicPolicy {
  // Up slow: quiet time after the first failure; doubles with each flap, up to the maximum. A cable that bounces for a second while
  // it is plugged in costs that second; one that flaps all day is out after a few turns.
  Nanos proof_min = 300 * kNanosPerMs;
  Nanos proof_max = 30 * kNanosPerSecond;
  // One flap is forgotten after this time without a failure.
  Nanos flap_decay = 60 * kNanosPerSecond;
  // The operator ends a drill; the data path still proves itself.
  Nanos drill_proof = 300 * kNanosPerMs;
  // A complaint that nobody repeats is forgotten.
  Nanos suspicion = 5 * kNanosPerSecond;
};

struct NicTransition {
  NicState from = NicState::kProving;
  NicState to = NicState::kProving;
  std::string reason;

  bool changed() const { return from != to; }
};

class NicMachine {
 public:
  // No time: nothing to wait for.
  static constexpr Nanos kNever = INT64_MAX;

  // PROVING until the first report of its link. A link that is up then needs no proof: nothing has failed yet, and a restarted daemon must
  // not take a running job's rails away.
  NicMachine(const NicPolicy& policy, Nanos now);

  // Takes an event from outside. `cause`: one line for a person, e.g. "link down". REQUIRES: `now` never goes back.
  NicTransition Handle(NicEvent event, Nanos now, const std::string& cause = "");

  // Ends the drill that is in force automatically at `when`. REQUIRES: drill_failed().
  void EndDrillAt(Nanos when);

  // Lets one thing happen that is due at `now`; call it until next_tick() is later than `now`.
  NicTransition Tick(Nanos now);
  Nanos next_tick() const;

  NicState state() const { return state_; }
  // Why it is in this state: one line.
  const std::string& reason() const { return reason_; }
  // When it came into this state.
  Nanos since() const { return since_; }

  // The remembered facts, independent of the shown state.
  bool link_known() const { return link_known_; }
  bool link_up() const { return link_up_; }
  bool uncabled() const { return uncabled_; }
  bool drained() const { return drained_; }
  bool drill_failed() const { return drill_failed_; }
  Nanos drill_until() const { return drill_until_; }
  bool silent() const { return silent_; }
  bool impaired() const { return impaired_; }
  bool suspected() const { return suspected_until_ != 0; }
  bool proving() const { return proof_until_ != 0; }
  uint32_t flaps_total() const { return flaps_total_; }

 private:
  // Writes the event into the memory below. False if it changes nothing.
  bool Remember(NicEvent event, Nanos now, const std::string& cause);
  bool RememberLink(bool up, Nanos now, const std::string& cause);
  bool RememberNoCable(Nanos now, const std::string& cause);
  bool RememberSilence(bool silent, Nanos now, const std::string& cause);
  bool RememberComplaint(Nanos now, const std::string& cause);
  // Makes the transition of the table.
  NicTransition Step(NicEvent event, Nanos now);
  // The state that the memory calls for.
  NicState Remembered() const;
  std::string ReasonFor(NicState state) const;
  void CountFlap(Nanos now);
  Nanos ProofTime() const;

  const NicPolicy policy_;
  NicState state_ = NicState::kProving;
  std::string reason_;
  Nanos since_;

  bool link_known_ = false;
  bool link_up_ = false;
  bool had_link_ = false;  // ever
  bool uncabled_ = false;  // the link is down for want of a cable
  std::string link_cause_;
  bool silent_ = false;  // only while the link is up: a link that went down explains it
  std::string silent_cause_;
  bool drill_failed_ = false;
  Nanos drill_until_ = 0;  // 0: no drill, or one without an end
  bool drained_ = false;
  bool impaired_ = false;
  std::string impaired_cause_;
  std::string suspected_cause_;
  Nanos suspected_until_ = 0;  // 0: not suspected
  Nanos proof_until_ = 0;      // 0: no proof under way
  std::string proof_cause_;
  FlapLevel flaps_;  // failures not yet forgiven
  uint32_t flaps_total_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_NIC_MACHINE_H_
