// Formats the line of a job that gives up on a peer, for its own log and the daemon: the same everywhere, with the command that explains
// it. Pure.
#ifndef R2CC_PLAN_PAGE_GAVE_UP_H_
#define R2CC_PLAN_PAGE_GAVE_UP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plan/page/ring.h"

namespace r2cc::plan {

// The port that the daemon reports as dead, as the job knew it when it gave up. The numbers are part of the ring's format.
enum class DeadPort : uint32_t { kNone = 0, kPeer = 1, kOwn = 2 };
// In place of a DeadPort: the job knows nothing of its rails, and the record is of none of them. 0.2.0 reads it as kNone.
constexpr uint64_t kNoRail = 3;

struct GaveUpRail {
  std::string rail;                            // the job's name for it
  std::string nic;                             // the daemon's; empty: none of this node's NICs
  std::string peer_nic;                        // where it leads
  EvidenceCause cause = EvidenceCause::kNone;  // kNone: it never led there
  std::string since;                           // a time of day; empty: not known
  DeadPort dead_port = DeadPort::kNone;
};

struct GaveUp {
  std::string job;
  int32_t pid = 0;
  std::string node;
  std::string peer;  // its node
  int64_t lasted_ns = 0;
  std::vector<GaveUpRail> rails;  // none: nothing is known of them
};

// "job train (pid 4711) on n3 gave up on n1 after 30.0 s: rail0 port of n1 silent since 03:12:04, rail1..3 link down; r2ccctl nic why
// n1/rail0". Rails with the same text are joined.
std::string GaveUpText(const GaveUp& gave_up);

// The time of day of CLOCK_REALTIME nanoseconds, by this machine's zone: "03:12:04".
std::string TimeOfDay(int64_t realtime_ns);

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_PAGE_GAVE_UP_H_
