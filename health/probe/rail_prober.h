// Probes the pairs between this node's NICs and those of other nodes: it chooses which ping leaves when, within the budget, and judges the
// answers. Pure: it holds no socket and no clock. The caller calls Tick every kRailProbeTick, or at next_tick, and sends what it returns.
//
// The cost for a healthy node is how often daemons wake up, and datagrams. So the pings of all pairs with one node leave together, and the
// two ends of a pair alternate, because an incoming ping postpones this end's own.
#ifndef R2CC_HEALTH_PROBE_RAIL_PROBER_H_
#define R2CC_HEALTH_PROBE_RAIL_PROBER_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "health/evidence/pair_state.h"
#include "health/evidence/pair_status.h"
#include "health/probe/large_judge.h"
#include "health/probe/pair_judge.h"
#include "health/probe/probe_keyring.h"
#include "health/probe/rail_wire.h"

namespace r2cc::health {

constexpr Nanos kRailProbeTick = 20 * kNanosPerMs;
// A daemon's messages that come closer together than this were on their way together, and count once. They are sent each half second.
constexpr Nanos kSignSpacing = 300 * kNanosPerMs;
// Pairs of one node; the caller chooses which.
constexpr size_t kRailPairsMax = 1024;
// Pairs of NICs of different rails whose pings are remembered.
constexpr size_t kStraysMax = 256;

struct RailProbePolicy {
  PairPolicy pair;
  LargePolicy large;
  // The budget. It never sends more, and no more at once than fits into burst_max.
  double rate_per_s = 200;
  double burst_max = 8;
  // Pairs that jobs use, and the others; further apart where the shares of the budget do not suffice.
  Nanos active_interval_min = 100 * kNanosPerMs;
  double active_rate_per_s = 140;
  Nanos auxiliary_interval_min = 200 * kNanosPerMs;
  double auxiliary_rate_per_s = 40;
  // A ping postpones the other end's by an interval, unless that end has not pinged for this many intervals.
  int put_off_intervals_max = 3;
  // Pings to a node leave up to this time before they are due, together with one that is due: if a pair is not answered, the others are
  // witnesses.
  Nanos together = 100 * kNanosPerMs;
  // A suspect pair, and the pairs that distinguish its two ends: one probe a tick, for this time after the last reason for suspicion.
  Nanos suspicion = 500 * kNanosPerMs;
  // Interval of a pair with the same node as a suspect one, which serves as a witness: half of the time over which a pair must be silent.
  Nanos witness_interval_min = 60 * kNanosPerMs;
  // Part of the budget that suspects may take; the remaining part shows that their peers' daemons are awake.
  double suspects_share = 0.75;
  // A large ping leaves together with a small one of its pair, so that it causes no wake-up, and from the same budget. Each costs three
  // datagrams. Every 300 ms they were more than half of what an idle daemon with a job sends (231 datagrams a second instead of 96), and
  // doubled its processor time. A job that loses large packets reports it, and then they leave at each tick.
  Nanos large_interval_min = 800 * kNanosPerMs;
  // The interval grows if there are more pairs than these rates serve: pairs that jobs use, and the others.
  double large_active_rate_per_s = 40;
  double large_auxiliary_rate_per_s = 15;
  // For this time the daemon relies on the path MTU that this node's or the peer's kernel has found: a tenth of the time for which
  // Linux keeps it.
  Nanos path_mtu_believed = 60 * kNanosPerSecond;
};

// A pair that is to be probed.
struct RailTarget {
  PairKey key;
  std::string address;  // of the peer's NIC
  uint16_t port = 0;
  uint64_t nonce = 0;   // of the peer's daemon
  bool active = false;  // jobs use it, or this node looks at it for others
  uint32_t user = 0;    // the user whose jobs use the pair, if it is active: users share the budget
  // The largest packet that the peer's daemon takes as a probe, with the IP header; 0: only small ones.
  uint32_t packet_max = 0;

  friend bool operator==(const RailTarget&, const RailTarget&) = default;
};

struct RailPing {
  std::string nic;  // this node's
  NicKey peer;
  Nanos answered_sent = 0;  // when the latest of the pair's that was answered had left; 0: none was
  std::string address;
  uint16_t port = 0;
  RailProbeBytes bytes{};  // the first; zeros make it as long as this:
  size_t length = kRailProbeBytes;
};

// The answers to a datagram that came in.
struct RailAnswer {
  RailProbeBytes bytes{};
  size_t length = kRailProbeBytes;
  // For a large ping: sent after `bytes`, and instead of it if that one is larger than this kernel lets leave.
  std::optional<RailProbeBytes> after;
  std::optional<RailProbeBytes> instead;
};

// Counts what was refused, by reason.
struct RailProbeCounts {
  uint64_t sent = 0;
  uint64_t malformed = 0;   // no probe at all
  uint64_t unknown = 0;     // with a nonce or from an address that is not its sender's: an earlier run of the daemon, or another sender
  uint64_t forged = 0;      // with a wrong MAC
  uint64_t misrouted = 0;   // meant for another NIC
  uint64_t unexpected = 0;  // a pong that nobody waits for (too late, or twice)
};

// One thread at a time.
class RailProber {
 public:
  // `keys`: outlives it. A node that is not in it is neither probed nor answered.
  RailProber(std::string node, ProbeKeyring* keys, const RailProbePolicy& policy);

  // The whole set of pairs. The state of those that stay is kept; at most kRailPairsMax are taken, active ones first.
  void SetTargets(std::vector<RailTarget> targets, Nanos now);

  // The link of this node's `nic` went up or down. While it is down its pairs are not probed, and they are unknown.
  void SetLink(const std::string& nic, bool up, Nanos now);
  // The MTU of its interface; 0: not known, and nothing large is sent from it.
  void SetMtu(const std::string& nic, uint32_t mtu);

  // The daemon of `nic`, a NIC of this node or another, had given it up and no longer does. The old silence of its pairs proves nothing
  // now: they become unknown, and are probed soon.
  void Renew(const NicKey& nic, Nanos now);

  // Another node suspects this node's `nic`. Some of its pairs are probed in quick succession for a while: those that answered last and do
  // not lead to a NIC in `dead`.
  void Suspect(const std::string& nic, const std::set<NicKey>& dead, Nanos now);

  // The same for one pair.
  void Ask(const PairKey& key, Nanos now);
  // As Suspect, with large pings: it is suspected that large packets do not pass between the NIC and `peer` (which may be empty), and
  // between the NIC and others of its rail.
  void SuspectLarge(const std::string& nic, const NicKey& peer, Nanos now);

  // A message of the daemon of `node` came in over another way than the rails. It bears witness where only one pair joins the two nodes:
  // there a probe is overdue if it left before the third latest message. One message proves little, as it may have been on its way for
  // long.
  void NoteAlive(const std::string& node, Nanos now);

  // Judges, and returns what to send now.
  std::vector<RailPing> Tick(Nanos now);

  // When Tick has something to do again, at least a kRailProbeTick after the last. Other calls may change it: the last awaited answer puts
  // it off, and so does a ping that comes in.
  Nanos next_tick() const;

  // A ping from `target`'s own NIC to a NIC of another rail. It belongs to no pair: an answer shows only that the peer's NIC is on this
  // NIC's network. Nothing, if there is no key for it. At most kStraysMax are waited for.
  std::optional<RailPing> Stray(RailTarget target, Nanos now);
  // The pairs whose stray pings were answered at `since` or later.
  std::vector<PairKey> StraysAnswered(Nanos since) const;

  // A datagram that arrived from the address `from` at this node's `nic` at `received`. A ping's answer, to be sent back to where it came
  // from; nothing for anything else.
  std::optional<RailAnswer> Receive(const std::string& nic, const std::string& from, std::span<const uint8_t> bytes, Nanos received);

  // It did not let `ping` leave, because that is larger than what it knows to pass.
  void TooLarge(const RailPing& ping, Nanos now);
  // The kernel did not let `ping` leave for another reason: it counts nothing for large packets.
  void NotSent(const RailPing& ping);

  // This node's kernel dropped datagrams for its `nic`. Answers to outstanding probes may be among them, so their lack proves nothing.
  // `from`: only probes to this address are affected.
  void LostHere(const std::string& nic, std::string_view from = {});

  std::vector<RailPairStatus> Pairs() const;
  // Each NIC whose link is up has a pair that answers, and no pair is silent. Much quicker than the statuses of all pairs.
  bool Settled() const;
  // Some pair was asked `lasting` after the last probe that was answered, or never was answered. As quick.
  bool AnyUnanswered(Nanos lasting) const;
  // Grows whenever a pair's verdict or the set of pairs changes.
  uint64_t revision() const { return revision_; }
  const RailProbeCounts& counts() const { return counts_; }

 private:
  // Pairs of the same NIC that are probed when one of them is late: enough to distinguish the NIC from the pair, few enough for the budget.
  static constexpr int kCompanionsMax = 3;

  struct Pair {
    RailTarget target;
    uint64_t id = 0;
    uint64_t nic_hash = 0;
    uint64_t node_hash = 0;
    PairJudge judge;
    PairVerdict reported = PairVerdict::kUnknown;
    Nanos asked_since = 0;  // answers to earlier probes are old news; 0: all count
    Nanos due = 0;
    Nanos last_sent = 0;
    Nanos suspect_until = 0;
    LargeJudge large;
    PairVerdict reported_large = PairVerdict::kUnknown;
    Nanos large_due = 0;
    Nanos large_suspect_until = 0;
    uint32_t path_mtu = 0;  // what passes on the way, as kernels know; 0: nothing less than both ends'
    Nanos path_mtu_until = 0;

    bool Awaited() const { return last_sent > judge.answered_sent(); }
    // Something is to be judged soon.
    bool AwaitedAtAll() const { return Awaited() || large.Awaits(); }
  };
  struct StrayPair {
    RailTarget target;
    uint64_t id = 0;
    uint64_t sequence = 0;
    Nanos answered = 0;  // 0: never
  };
  void Judge(Nanos now);
  void SuspectAround(const Pair& pair, Nanos now);
  // Suspects those candidates that answered last: they are most likely to show that the NIC is alive.
  void SuspectSome(std::vector<Pair*> candidates, Nanos now);
  // The witnesses for a pair: pairs with the same node. No pair is a witness for itself.
  std::vector<Witness> WitnessesFor(const Pair& pair) const;
  // The likeliest to bear witness; null: there is none.
  Pair* WitnessPair(const Pair& pair) const;
  Nanos Interval(const RailTarget& target) const;
  uint64_t Random(const Pair& pair, Nanos now) const;
  void MarkSuspect(Pair* pair, Nanos now);
  void PutOff(const std::string& nic, const std::string& peer, Nanos received);
  // Nothing: there is no key for it.
  std::optional<RailPing> Ping(Pair* pair, Nanos now);
  std::optional<RailPing> Send(Pair* pair, RailProbeKind kind, size_t length, uint64_t sequence, Nanos now);
  RailAnswer AnswerLarge(const std::string& nic, const std::string& from, const std::string& sender, RailProbe pong, const ProbeMacKey& key,
                         Nanos received);
  // A large ping is due together with the small one that leaves now.
  bool LargeIsDue(const Pair& pair, Nanos now) const;
  std::optional<RailPing> LargePing(Pair* pair, Nanos now);
  void SizeLarge(Pair* pair, Nanos now);
  void SetPathMtu(Pair* pair, size_t too_large, Nanos now);
  void MarkLargeSuspect(const Pair& pair, Nanos now);
  void JudgeLarge(Pair* pair, Nanos now);
  Nanos LargeInterval(const RailTarget& target) const;
  // Answers before `since` are old news.
  static PairVerdict LargeVerdict(const Pair& pair, Nanos since);
  // False: it answers no stray ping.
  bool OnStrayPong(const std::string& nic, const std::string& from, const RailProbe& pong, Nanos received);
  void OnPong(const std::string& nic, const std::string& from, const RailProbe& pong, Nanos received);
  // Goes over all pairs for what next_tick depends on.
  void FindNext();
  static PairVerdict Verdict(const Pair& pair, Nanos since);
  void NoteVerdict(Pair* pair);

  const std::string node_;
  ProbeKeyring* const keys_;
  const uint64_t seed_;
  const RailProbePolicy policy_;
  std::map<PairKey, Pair> pairs_;
  std::map<uint64_t, PairKey> keys_by_id_;
  std::map<PairKey, StrayPair> strays_;
  std::map<std::string, std::vector<Pair*>, std::less<>> by_node_;
  std::set<std::string> links_down_;
  std::map<std::string, uint32_t> mtus_;  // of this node's NICs
  Nanos large_active_interval_ = 0;
  Nanos large_auxiliary_interval_ = 0;
  using Signs = std::array<Nanos, 3>;                // times at which a daemon showed activity, latest first
  std::map<std::string, Signs, std::less<>> signs_;  // by node of a pair
  std::map<uint32_t, Nanos> active_intervals_;       // by user
  Nanos auxiliary_interval_ = 0;
  uint64_t next_id_ = 1;
  uint64_t next_sequence_ = 1;
  uint64_t revision_ = 1;
  double tokens_ = 0;
  Nanos last_tick_ = 0;
  Nanos late_after_ = INT64_MAX;  // the next Tick is late then
  Nanos suspect_until_ = 0;       // of the pair that is suspect for longest
  size_t awaited_ = 0;            // pairs whose latest ping has no answer yet
  Nanos next_due_ = 0;            // of all pairs' pings; far off if there are none
  RailProbeCounts counts_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_RAIL_PROBER_H_
