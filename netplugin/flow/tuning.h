// The numbers that flows and links are tuned by: unit in the name or type, reason, and what was measured of it. Limits of formats and
// bounds on memory are where they are enforced.
#ifndef R2CC_NETPLUGIN_FLOW_TUNING_H_
#define R2CC_NETPLUGIN_FLOW_TUNING_H_

#include <cstddef>
#include <cstdint>

#include "base/core/clock.h"
#include "netplugin/flow/types.h"

namespace r2cc::net::tuning {

// ---- acknowledgements and grants (flow/recv_flows.cc) ----

// Messages, and time. Small messages that no sender waits for are acknowledged together. Not measured.
constexpr uint64_t kSmallTogether = kEagerWindow / 2;
constexpr Nanos kSmallTogetherFor = 4 * kNanosPerMs;
// Messages, and time. NCCL has four large messages under way in a flow, so a sender that may send on waits for few. A frame costs both
// processors several microseconds; the limits are not measured.
constexpr uint64_t kLargeTogether = 2;
constexpr Nanos kLargeTogetherFor = 1 * kNanosPerMs;
// Messages. A sender with so many grants left may send on. Not measured.
constexpr uint64_t kGrantsEnough = 2;

// ---- chunks (link/chunk_size.cc) ----

// A flow that keeps to its own link. On a quick rail larger chunks are better, because each costs the lock at either end, as far as none
// lasts much longer than this. Not measured.
constexpr double kOwnChunkSeconds = 0.0002;
constexpr double kOwnChunkBytesMost = 512 * 1024;
// Dealt out to all links. A message is whole when its last chunk is, so none may take a slow rail much longer than this. Measured: with
// chunks of 128 KiB a rail at a quarter of 500 Mbit/s held each message up.
constexpr double kDealtChunkSeconds = 0.002;
constexpr double kDealtChunkBytesLeast = 32 * 1024;

// ---- rates and shares (link/rate_estimator.cc, link/send_links*.cc) ----

// An estimate needs so much: less is noise of timers and bursts. Not measured.
constexpr Nanos kBusyLeast = 20 * kNanosPerMs;
constexpr uint64_t kBytesLeast = 256 * 1024;
// Fraction that the newest estimate has in the average. Not measured.
constexpr double kNewWeight = 0.5;
// Estimates. The first one of a link that had nothing to do before is that of empty queues, and of what a shaper let it save.
constexpr int kEstimatesLeast = 2;
// Bytes that the busiest link has carried: of less a chunk is too large a part.
constexpr uint64_t kBusiestLeast = 512 * 1024;
// Fractions of the others' rate: below the first a link is slow, above the second it is sound again. Not measured.
constexpr double kSlowBelow = 0.6;
constexpr double kSoundAbove = 0.8;
// Rounds that agree before a link changes between the two. Not measured.
constexpr int kRoundsToChange = 3;
// Permille. The least share that a slow link keeps. Not measured.
constexpr double kShareLeast = 20;
// Factor a round. Computed: a share that is too small for a link at 2 % is right again after 17 rounds, 0.85 s; one at a quarter after 6.
constexpr double kShareGrowth = 1.25;
// Rounds: 5 s or more, at a round each kJudgeEvery. Measured: a rail that is slow still costs a job of small messages some 0.3 s each time.
constexpr int kUnusedRoundsMost = 100;
// Permille. Smaller corrections of a share are not worth a new start of the account. Not measured.
constexpr int kShareStep = 50;
// A round of judging rates. Not measured.
constexpr Nanos kJudgeEvery = 50 * kNanosPerMs;
// Part of its share with which a rail that comes back begins, and the time between the steps, each of which doubles it: all of it after
// three. Not measured.
constexpr uint16_t kRampFirstPart = 8;
constexpr Nanos kRampStep = 100 * kNanosPerMs;

// ---- faults (link/fault_watch.cc, link/flap_damper.cc, link/link_progress.cc, link/send_links_watch.cc) ----

// Losses of links that nothing has passed yet. Older ones of a link that flaps are forgotten, and never passed.
constexpr size_t kFaultsMost = 256;
// More than a lost grant takes to come again. Not measured.
constexpr Nanos kGrantMost = 100 * kNanosPerMs;
// Losses, of which each halves in FlapDamper::kHalfLife: up to here a rail is welcome at once. Not measured.
constexpr double kFreeLosses = 2.5;
// The first hold beyond that; it doubles with each loss more. Not measured.
constexpr Nanos kHoldFirst = kNanosPerSecond / 2;
// Retransmission timeouts. Control frames queue behind the chunks of their own rail. While those move, one timeout may be congestion. The
// second comes 600 ms after the last acknowledgement (Linux waits 200 ms first, then twice as long), which no queue of a working rail
// explains.
constexpr uint32_t kTimeoutsBehindBulk = 2;
// A data check that is with the peer's kernel waits for a process that stands still. A proxy that acknowledges and hands nothing on looks
// the same, so another attempt begins after so long. Not measured.
constexpr Nanos kUnreadMost = 10 * kNanosPerSecond;
// The daemon needs the reason why attempts fail, and that a rail is slow, no more often. Attempts may follow each other every 50 ms.
constexpr Nanos kReportEvery = kNanosPerSecond;

// ---- channels and peers (link/control_queue.cc, link/session_rails.cc, link/*_session_time.cc) ----

// A frame that was not answered is sent again. Not measured.
constexpr Nanos kResendAfter = 100 * kNanosPerMs;
// RAIL UP comes on every channel. Its copies come within the round trips of the slowest; a rail does not go down and up again in that
// time. Not measured.
constexpr Nanos kCopiesWithin = 50 * kNanosPerMs;
// A peer that is silent is probed so often. Not measured.
constexpr Nanos kProbeEvery = 250 * kNanosPerMs;
// A peer whose links are up and bring nothing is asked so often on the out-of-band channel. Not measured.
constexpr Nanos kQuietPingEvery = kNanosPerSecond;
// A process that was stopped itself does not count more of that time as its peer's. Ticks come every 5 to 10 ms.
constexpr Nanos kTickMost = 100 * kNanosPerMs;

}  // namespace r2cc::net::tuning

#endif  // R2CC_NETPLUGIN_FLOW_TUNING_H_
