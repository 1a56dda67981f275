// Judges the RDMA paths of a NIC by the writes over them, compared with the UDP probes of the same pairs. Pure.
//
// An unanswered write is evidence about RDMA only if a UDP probe that left with it or later was answered: the peer's daemon was there then,
// and IP works. If UDP is silent too, the verdict on UDP counts. It also counts if RDMA answers and UDP does not: jobs need IP, at least
// for their out-of-band connections.
#ifndef R2CC_HEALTH_PROBE_RDMA_PATH_JUDGE_H_
#define R2CC_HEALTH_PROBE_RDMA_PATH_JUDGE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/core/clock.h"
#include "health/evidence/evidence.h"
#include "health/io/rdma_end.h"

namespace r2cc::health {

// As many as make a UDP pair silent, and as many as prove that it is back (PairPolicy).
constexpr int kRdmaMisses = 5;
constexpr int kRdmaProofAnswers = 3;

enum class RdmaPathState : uint8_t { kUnknown, kAnswering, kBroken };

class RdmaPathJudge {
 public:
  void Answered();
  // A write that was posted at `sent` failed; the latest UDP probe that was answered had left at `udp_answered_sent`.
  void Missed(Nanos sent, Nanos udp_answered_sent);
  // The peer's daemon was restarted, or accepts no such probes any more.
  void Forget() { *this = RdmaPathJudge(); }

  RdmaPathState state() const { return state_; }

 private:
  RdmaPathState state_ = RdmaPathState::kUnknown;
  int misses_ = 0;   // in a row
  int answers_ = 0;  // answers in a row on a broken path
};

struct RdmaPathStatus {
  NicKey peer;
  RdmaPathState state = RdmaPathState::kUnknown;
};
// Why a NIC cannot be used for RDMA, one line; empty: it can. It cannot when most of its known paths are broken: then the fewest faults
// that explain it are here. A peer whose port is dead breaks one path of each other NIC.
std::string RdmaFault(std::span<const RdmaPathStatus> paths);

enum class RdmaStep : uint8_t {
  kWait,
  kConnect,  // the own end to the peer's
  kWrite,    // both are connected to each other
  kRenew,    // the peer has another end than the one that the own is connected to: only a new one can meet it
};
// The next step for this end, from the end that the peer published; nothing: it has published none.
RdmaStep NextRdmaStep(const RdmaEnd& own, const std::optional<RdmaEnd>& peer);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_RDMA_PATH_JUDGE_H_
