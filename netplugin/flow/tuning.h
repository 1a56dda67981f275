// The numbers that the data plane is tuned by: unit in the name or type, reason, and what was measured of it. Another value costs speed,
// processor time or the length of a stall, and no byte. Numbers that are not free are where they are used: formats, limits that both ends
// or the operating system know, bounds on what a peer or a job may send, layouts of memory.
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

// A chunk where nothing is known, or chunks are striped, unless R2CC_CHUNK_BYTES is set. Each costs its sender and its receiver the lock
// once, and a message is whole when its last chunk is. Measured: striped next to a rail at a quarter of 500 Mbit/s, 128 KiB move no less
// than 32 KiB.
constexpr uint32_t kChunkBytesBase = 128 * 1024;
// A flow that keeps to its own link. On a quick rail larger chunks are better, because each costs the lock at either end, as far as none
// lasts much longer than this. Not measured.
constexpr double kOwnChunkSeconds = 0.0002;
constexpr double kOwnChunkBytesMost = 512 * 1024;
// What one rail takes at a time: bulk in the kernel or with the device, behind which control frames and what a fault makes the rail carry
// wait. Not measured.
constexpr double kQueuedSeconds = 0.002;

// ---- rates and shares (link/rate_estimator.cc, link/send_links*.cc) ----

// An estimate needs so much: less is noise of timers and bursts. Not measured.
constexpr Nanos kBusyLeast = 40 * kNanosPerMs;
constexpr uint64_t kBytesLeast = 256 * 1024;
// Fraction that the newest estimate has in the average. Not measured.
constexpr double kNewWeight = 0.5;
// Estimates. The first one of a link that had nothing to do before is that of empty queues, and of what a shaper let it save: nobody is
// compared with fewer. As many must agree before a link is slow, or sound again. Not measured.
constexpr int kEstimatesLeast = 3;
// Fractions of the others' rate: below the first a link is slow, above the second it is sound again. Not measured.
constexpr double kSlowBelow = 0.6;
constexpr double kSoundAbove = 0.8;
// Rounds in which other links had an estimate, 5 s or more. A slow link of which nothing was seen meanwhile is tried again. Measured: a
// rail that is slow still costs a job of small messages some 0.3 s each time.
constexpr int kUnusedRoundsMost = 200;

// ---- faults (link/fault_watch.cc, link/flap_damper.cc, link/link_progress.cc, link/send_links_watch.cc) ----

// Losses, of which each halves in kFlapHalfLife: up to here a rail is welcome at once. Not measured.
constexpr double kFreeLosses = 2.5;
// The first hold beyond that; it doubles with each loss more. So a rail whose address changes four times in a row is in use again within
// two seconds.
constexpr Nanos kHoldFirst = kNanosPerSecond / 2;
constexpr Nanos kFlapHalfLife = 5 * kNanosPerSecond;
constexpr Nanos kFlapHoldMost = 10 * kNanosPerSecond;
// Times R2CC_SILENCE_MS (250). A ping may wait so long behind bytes that the peer's kernel takes: a working rail's queue holds some
// milliseconds. Not measured.
constexpr int kExcuseSilences = 4;
// Retransmission timeouts. Control frames queue behind the chunks of their own rail. While those move, one timeout may be congestion. The
// second comes 600 ms after the last acknowledgement (Linux waits 200 ms first, then twice as long), which no queue of a working rail
// explains.
constexpr uint32_t kTimeoutsBehindBulk = 2;
// A data check that is with the peer's kernel waits for a process that is stopped. A proxy that acknowledges and hands nothing on looks
// the same, so another attempt begins after so long. Not measured.
constexpr Nanos kUnreadMost = 10 * kNanosPerSecond;
// The daemon needs totals, the reason why attempts fail, and that a rail is slow, no more often. Attempts may follow each other every 50
// ms. Nor is a lost link called a fault sooner: a process that is gone is found gone within R2CC_SILENCE_MS, mostly, as its address refuses
// connections.
constexpr Nanos kReportEvery = kNanosPerSecond;

// ---- attempts (link/retry_policy.h, link/cross_rail.h, link/oob_watch.cc) ----

// The wait after the first attempt that failed, and the longest one: it doubles, with jitter. Where no link is up it bounds the wait of
// pairs of rails, too. A link that was up for less than the longest wait is not steady, and its wait goes on doubling. Not measured.
constexpr Nanos kRetryWaitLeast = 50 * kNanosPerMs;
constexpr Nanos kRetryWaitMost = 2 * kNanosPerSecond;
// The first wait before something is tried again that a moment does not mend: a link that stalls under load, rails that
// cannot be joined, a fence that cannot be proved, a device that is lost. It grows each time, but a fence's. Not measured.
constexpr Nanos kSlowRetryLeast = kNanosPerSecond;
// The least time that an attempt is given. Not measured.
constexpr Nanos kAttemptLeast = kNanosPerSecond;
// An acceptor keeps a connection that has to wait for the end of the previous incarnation: as long as its initiator waits at least.
constexpr Nanos kConnectionKeptMost = kAttemptLeast;
// A rail counts as lost after this time. A shorter loss is no reason for another plan. Not measured.
constexpr Nanos kRailLostAfter = kNanosPerSecond;
// The acceptor of a connection waits so long for its first frame: the initiator ignores an answer after 2 kRetryWaitMost.
constexpr Nanos kSpeaksWithin = 2 * kRetryWaitMost + kNanosPerSecond;
// A link that passes its data check and then stalls under load costs the job R2CC_SILENCE_MS each time. The wait triples with each stall,
// up to this. Computed: ten minutes of such a link are at most seven stalls, 1.75 s. After as long without one it begins again.
constexpr Nanos kStallHoldMost = 300 * kNanosPerSecond;
// The longest wait between attempts to join two rails that have different numbers. A fabric of separate rails never joins them. Not
// measured.
constexpr Nanos kPairWaitMost = 60 * kNanosPerSecond;
// A probe, or a connection on the management network: a round trip, or a second more if the first packet is lost.
constexpr Nanos kConnectMost = 2 * kNanosPerSecond;
// A probe that nobody asks for ends. Who waits for a peer asks several times a second; a busy process leaves less between two questions.
constexpr Nanos kProbeUnaskedFor = 10 * kNanosPerSecond;
// A process that hung up on a probe counts as running for this time. One that runs hangs up on each next probe after kSpeaksWithin, and a
// question comes every kProbeEvery.
constexpr Nanos kRunsFor = 2 * kSpeaksWithin;
// A rail's NIC reports that it is up; it counts when that has lasted. Measured: an emulated switch forwards after 3 ms.
constexpr Nanos kRailSettle = 20 * kNanosPerMs;
// A peer that no rail reaches is reported. Longer than a job's start and than a lost packet takes to be sent again; R2CC_DEADLINE_MS is
// much longer. Not measured.
constexpr Nanos kReachEarly = 3 * kNanosPerSecond;

// ---- channels and peers (link/control_queue.cc, link/session_rails.cc, link/*_session_time.cc) ----

// A frame that was not answered is sent again. Not measured.
constexpr Nanos kResendAfter = 100 * kNanosPerMs;
// RAIL UP comes on every channel. Its copies come within the round trips of the slowest; a rail does not go down and up again in that
// time. Not measured.
constexpr Nanos kCopiesWithin = 50 * kNanosPerMs;
// A peer that is silent is probed so often. Not measured.
constexpr Nanos kProbeEvery = 250 * kNanosPerMs;
// What changes seldom is looked at so often: whether requests make progress, and whether the out-of-band channel of a peer works whose
// links bring nothing. The kernel asks as often (TCP_KEEPIDLE, TCP_KEEPINTVL). Not measured.
constexpr Nanos kLookEvery = kNanosPerSecond;
// A process that was stopped itself does not count more of that time as its peer's. Ticks come every 5 to 10 ms.
constexpr Nanos kTickMost = 100 * kNanosPerMs;
// A closed flow's buffers are waited for so long, at either end; then the link that may still use them ends. It takes a round trip and a
// look of the peer's process, and 134 ms more where a device sends a lost packet again.
constexpr Nanos kRetireMost = 250 * kNanosPerMs;
// Bytes of control frames, some 1,200 acknowledgements. A peer that sends as fast as we read must not keep the thread, which may be NCCL's.
// And a peer that is stopped takes nothing, perhaps for hours: repeated frames wait until fewer wait to leave. Not measured.
constexpr size_t kControlBytesMost = 64 * 1024;
// A host on the management network that has vanished shows after so long (TCP_KEEPCNT, TCP_USER_TIMEOUT). Not measured.
constexpr Nanos kOobLostAfter = 8 * kNanosPerSecond;

// ---- threads (transport/) ----

// Peers let time pass so often, whoever does the work: the grain of all times above. Not measured.
constexpr Nanos kTickEvery = 5 * kNanosPerMs;
// The engine's thread wakes up so often while NCCL's threads do the work, only to see that they still do, and no more often it looks for
// the control plane's back-off and staleness: the link monitor and the daemon wake it by their descriptors. Not measured.
constexpr Nanos kEngineLookEvery = 10 * kNanosPerMs;
// It wakes up so often while nothing is to be done. Not measured.
constexpr Nanos kIdleWait = 100 * kNanosPerMs;
// What takes milliseconds, and is seldom waited for, is looked at so often: the links of a close, a call of the device that must come back
// first, the daemon's answer to an attachment.
constexpr Nanos kLookSoon = kNanosPerMs;
// A thread of NCCL's looks where its message is expected. It looks at all links only so often: soon while it waits, seldom on the way of a
// message, and with workers only to see that all goes on, as the lock is theirs. Not measured.
constexpr Nanos kPollWaiting = 50 * 1000;
constexpr Nanos kPollPosting = 1000 * 1000;
constexpr Nanos kPollWithWorkers = 20 * 1000;
// Tries for a lock before a worker sleeps, and pauses of the processor in each: about 10 microseconds. A sleep costs more, and so does a
// call to the scheduler.
constexpr int kTriesForLock = 100;
constexpr int kPausesOfTry = 3;
// A worker stays awake after a message. To be woken up takes a thread some ten microseconds, and its waker a few.
constexpr Nanos kWorkerAwakeFor = 50 * 1000;
// Bytes. To move a larger message takes longer than to wake another thread for it, though its copy is made first. A smaller one comes in
// one call with its header. Behind a larger chunk only the next header is read ahead, as its payload is better read to where it belongs.
constexpr uint64_t kSmallBytesMost = 12 * 1024;
// So many small messages in a row end bulk. A few, such as flags or the rests of an operation in its channels, do not. Not measured.
constexpr int kSmallMessagesMost = 16;
// Processors that bulk workers and reduction threads leave to NCCL and the job.
constexpr int kProcessorsOfNccl = 4;
// Beyond those, there is one reduction thread for each of this many processors. Not measured.
constexpr int kProcessorsPerReduction = 4;
// Measured on H100s, 16 processors a node, rails without a rate: six workers moved 80 Gbit/s, ten 109, sixteen 119.
constexpr int kBulkWorkersMost = 16;
// Measured: a thread reduces some 6 GB/s, so a few keep up with the rails.
constexpr int kReduceThreadsMost = 4;
// Bytes of the result. With the sources' pieces it fits into a processor's second cache.
constexpr size_t kReducePieceBytes = 64 * 1024;
// Chunks that leave before input is looked at again, and calls of a worker before the other sockets of its thread have their turn. Not
// measured.
constexpr int kTurnCalls = 32;
// A link's sent bytes are sampled so often for its rate. Not measured.
constexpr Nanos kRateSampleEvery = 25 * kNanosPerMs;
// Peers to which a process opens all links. An RDMA link pins 236 KiB at each end, a TCP link has a socket for each worker. Computed:
// 118 MiB for 64 peers by 8 rails.
constexpr size_t kPeersWithAllLinks = 64;
// A job's start waits so long for the daemon to answer the attachment. Not measured.
constexpr Nanos kAttachPatience = 300 * kNanosPerMs;
// The same warning is logged again, a shortage of descriptors is forgotten, and a close that the own device does not end is logged, after
// so long. Not measured.
constexpr Nanos kWarnAgainAfter = 10 * kNanosPerSecond;
// A wait is reported. It is as long as between two looks more than is known. Shorter pauses are those of a job that computes.
constexpr Nanos kProgressReportAfter = 2 * kNanosPerSecond;

// ---- queues of a rail (transport/tcp/budget.cc, transport/verbs/verbs_send_link.cc) ----

// Bytes. The least that a socket may have unsent while chunks are striped, as a message then waits for those that a slow rail has taken.
// Else it is a chunk, and twice as much may be held. Measured: on one processor, a TCP rail of 80 Mbit/s next to an RDMA rail ran dry with
// less, and both together moved 15 % less.
constexpr uint32_t kUnsentBytesLeast = 32 * 1024;
// Beyond two round trips, what the kernel may hold, sent or not. TCP would fill a slow rail's queue with its window, tens of milliseconds.
constexpr double kHeldSeconds = 0.005;
// Bytes. While chunks are striped, an eager message (64 KiB) fits at least. Beyond the second TCP's own limit is little.
constexpr uint64_t kHeldBytesLeast = 96 * 1024;
constexpr double kHeldBytesMost = 4 * 1024 * 1024;
// One stream is the work of one processor at either end, so a quick rail wants several; but they share the rail, and each message takes
// longer. Not measured.
constexpr double kSocketBytesPerSecond = 600e6;
constexpr size_t kSocketsLeast = 2;
// Of a rail, unless R2CC_SOCKETS_PER_RAIL is set. Not measured.
constexpr int kSocketsMost = 4;

// ---- calls of a socket (transport/tcp/) ----

// With workers a message goes by several sockets at a time, each in its own thread: none takes more with one call. As much may wait in a
// socket as long as the rail's rate is not known. Measured: with 384 KiB a rail at a quarter of 500 Mbit/s held each message up for 25 ms.
constexpr uint32_t kCallBytesMost = 256 * 1024;
// Bytes that one socket moves before the others have their turn, or has unsent at most. Not measured.
constexpr uint32_t kTurnBytes = 1024 * 1024;
// Up to so many bytes are copied behind their header, for one buffer instead of two. Not measured.
constexpr size_t kCopiedBytes = 1024;
// Reads. A kernel that went back to acknowledging at once after a pause would stay so for too long. Not measured.
constexpr int kQuickAckSetEvery = 64;
// Finds by looking, after which epoll need not report: the kernel does that for each packet, on loopback in the sender's own call.
constexpr int kFoundEnough = 4;

// ---- RDMA (transport/verbs/) ----

// A receive may take so long to come back flushed; what takes longer proves nothing, and the second line decides. Measured: mean 2.5 to
// 9 ms, worst 188 ms on a busy emulated machine with one processor; a device of silicon takes microseconds.
constexpr Nanos kDrainMost = 50 * kNanosPerMs;
constexpr Nanos kDrainEvery = 200'000;
// The last step of a fence is tried again this soon, then after twice as long each time, up to kSlowRetryLeast: a device that is lost fails
// calls before its event is read. Not measured.
constexpr Nanos kFenceSoon = 10 * kNanosPerMs;
// A device that is lost is looked for at last this often: a driver takes seconds to come back.
constexpr Nanos kDeviceLookMost = 4 * kNanosPerSecond;
// The end waits so long for the links of a device to be closed. A fence takes milliseconds; one that cannot be proved never ends.
constexpr Nanos kClosingMost = kNanosPerSecond;
// The device's own retries take 0.94 s.
constexpr Nanos kGpuProofMost = 2 * kNanosPerSecond;
// One of so many requests is signaled: completions give back the queue's places, eight in a full queue, so its end is never waited for.
constexpr uint32_t kSignalEvery = 32;
// Receives, 128 of a link, are posted again in lists of so many. Measured: with 16 a message of 512 KiB cost 1.30 completions, not 1.2.
constexpr uint32_t kReceivesTogether = 32;
// Chunks that the device has at least, so that it never waits for us, and places that bulk leaves to credit and control messages.
constexpr size_t kDeviceChunksLeast = 2;
constexpr uint32_t kRequestsKept = 4;
// Factor. A request is reported as a whole. A rail that became slower than its measured rate takes so many times as long at most.
constexpr double kSlowerMost = 4;

// ---- collectives (collnet/) ----

// Steps of a lane, each way, so that its next message does not wait for the answer to the one before: all of NCCL's longest vector, 4 MiB.
// Measured: half of a node's rails lost, rails of 4 Gbit/s, 256 MiB: 309 ms, with one step 348.
constexpr uint32_t kStepsUnderWay = 8;
// Paths are observed so often, which takes each peer's lock; more often until the group is connected. A gap counts as two times this at
// most, as nobody observes while the job computes. Not measured.
constexpr Nanos kObserveEvery = 100 * kNanosPerMs;
constexpr Nanos kObserveEveryFirst = kNanosPerMs;
// A connection whose first packet was lost is tried again after a second, and only then other rails: members that start together, or fail
// over, are not without a path. Operations wait when a path that is in use again is lost again.
constexpr Nanos kPathLostAfter = 2 * kNanosPerSecond;
constexpr Nanos kPathBackAfter = 10 * kNanosPerSecond;

}  // namespace r2cc::net::tuning

#endif  // R2CC_NETPLUGIN_FLOW_TUNING_H_
