#include "health/probe/rail_prober.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/core/check.h"
#include "base/core/hash.h"
#include "health/probe/fair_intervals.h"

namespace r2cc::health {
namespace {

// A tick that comes so late means that this daemon had no processor: what arrived meanwhile may not have been read yet, so that nothing
// is judged before the next one.
constexpr Nanos kTickLateMax = kRailProbeTick;

}  // namespace

RailProber::RailProber(std::string node, ProbeKeyring* keys, const RailProbePolicy& policy)
    : node_(std::move(node)), keys_(keys), seed_(keys->nonce()), policy_(policy) {}

// splitmix64's last step: so that nodes do not probe in step. The same for all pairs with one node at one time, so that these do.
uint64_t RailProber::Random(const Pair& pair, Nanos now) const {
  uint64_t bits = seed_ ^ pair.node_hash ^ static_cast<uint64_t>(now);
  bits = (bits ^ bits >> 30) * 0xbf58'476d'1ce4'e5b9ULL;
  bits = (bits ^ bits >> 27) * 0x94d0'49bb'1331'11ebULL;
  return bits ^ bits >> 31;
}

void RailProber::SetTargets(std::vector<RailTarget> targets, Nanos now) {
  std::stable_partition(targets.begin(), targets.end(), [](const RailTarget& target) { return target.active; });
  if (targets.size() > kRailPairsMax) targets.resize(kRailPairsMax);
  std::map<PairKey, Pair> before = std::exchange(pairs_, {});
  bool changed = false;
  std::map<uint32_t, size_t> active;
  for (RailTarget& target : targets) {
    const PairKey key = target.key;
    if (target.active) ++active[target.user];
    if (auto known = before.extract(key)) {
      Pair& pair = known.mapped();
      if (target.nonce != pair.target.nonce) {
        pair.judge.Forget();
        pair.large.Forget();
      }
      changed |= target.active != pair.target.active;
      const bool awaited = target.active && !pair.target.active;
      pair.target = std::move(target);
      if (awaited) {
        pair.asked_since = now;
        pair.due = 0;
        NoteVerdict(&pair);
      }
      pairs_.insert(std::move(known));
      continue;
    }
    changed = true;
    Pair pair{.target = std::move(target), .judge = PairJudge(policy_.pair, now), .large = LargeJudge(policy_.large)};
    pair.id = next_id_++;
    pair.nic_hash = Fnv1a64(key.peer.ToString());
    pair.node_hash = Fnv1a64(key.peer.node);
    keys_by_id_[pair.id] = key;
    pairs_.emplace(key, std::move(pair));
  }
  for (const auto& [key, gone] : before) keys_by_id_.erase(gone.id);
  auto signs = std::exchange(signs_, {});
  by_node_.clear();
  for (auto& [key, pair] : pairs_) {
    by_node_[key.peer.node].push_back(&pair);
    const auto known = signs.find(key.peer.node);
    signs_.try_emplace(key.peer.node, known == signs.end() ? Signs() : known->second);
  }
  active_intervals_ = FairIntervals(active, policy_.active_interval_min, policy_.active_rate_per_s);
  const auto auxiliary = std::count_if(pairs_.begin(), pairs_.end(), [](const auto& pair) { return !pair.second.target.active; });
  auxiliary_interval_ = std::max(policy_.auxiliary_interval_min,
                                 static_cast<Nanos>(static_cast<double>(auxiliary) / policy_.auxiliary_rate_per_s * kNanosPerSecond));
  const auto large_interval = [this](auto pairs, double rate_per_s) {
    return std::max(policy_.large_interval_min, static_cast<Nanos>(static_cast<double>(pairs) / rate_per_s * kNanosPerSecond));
  };
  large_active_interval_ = large_interval(std::ssize(pairs_) - auxiliary, policy_.large_active_rate_per_s);
  large_auxiliary_interval_ = large_interval(auxiliary, policy_.large_auxiliary_rate_per_s);
  for (auto& [key, pair] : pairs_) SizeLarge(&pair, now);
  // Spread over one interval.
  for (auto& [key, pair] : pairs_)
    if (pair.due == 0) pair.due = now + static_cast<Nanos>(Random(pair, now) % static_cast<uint64_t>(Interval(pair.target)));
  if (changed || !before.empty()) ++revision_;
  FindNext();
}

Nanos RailProber::Interval(const RailTarget& target) const {
  return target.active ? active_intervals_.at(target.user) : auxiliary_interval_;
}

void RailProber::SetLink(const std::string& nic, bool up, Nanos now) {
  if (up ? links_down_.erase(nic) == 0 : !links_down_.insert(nic).second) return;
  for (auto& [key, pair] : pairs_) {
    if (key.own.nic != nic) continue;
    pair.judge.Reset(now);
    pair.large.Reset();
    NoteVerdict(&pair);
  }
  FindNext();
}

void RailProber::Renew(const NicKey& nic, Nanos now) {
  for (auto& [key, pair] : pairs_) {
    if ((key.peer != nic && key.own != nic) || VerdictOf(pair.judge.state()) == PairVerdict::kAnswering) continue;
    pair.judge.Reset(now);
    pair.due = now;
    NoteVerdict(&pair);
  }
  FindNext();
}

void RailProber::Suspect(const std::string& nic, const std::set<NicKey>& dead, Nanos now) {
  std::vector<Pair*> own;
  for (auto& [key, pair] : pairs_)
    if (key.own.nic == nic && VerdictOf(pair.judge.state()) != PairVerdict::kSilent && !dead.contains(key.peer)) own.push_back(&pair);
  SuspectSome(std::move(own), now);
}

void RailProber::Ask(const PairKey& key, Nanos now) {
  const auto pair = pairs_.find(key);
  if (pair != pairs_.end()) MarkSuspect(&pair->second, now);
}

void RailProber::MarkSuspect(Pair* pair, Nanos now) { pair->suspect_until = suspect_until_ = now + policy_.suspicion; }

// Late probes between two NICs may be the fault of either, or of what lies between: other pairs of both ends decide.
void RailProber::SuspectAround(const Pair& late, Nanos now) {
  std::vector<Pair*> own;
  int peers = 0;
  for (auto& [key, pair] : pairs_) {
    if (key == late.target.key || (key.peer == late.target.key.peer && peers++ < kCompanionsMax))
      MarkSuspect(&pair, now);
    else if (key.own == late.target.key.own && VerdictOf(pair.judge.state()) != PairVerdict::kSilent)
      own.push_back(&pair);
  }
  SuspectSome(std::move(own), now);
}

void RailProber::SuspectSome(std::vector<Pair*> candidates, Nanos now) {
  const auto end = candidates.begin() + std::min<std::ptrdiff_t>(kCompanionsMax, std::ssize(candidates));
  std::partial_sort(candidates.begin(), end, candidates.end(),
                    [](const Pair* a, const Pair* b) { return a->judge.answered_sent() > b->judge.answered_sent(); });
  for (auto one = candidates.begin(); one != end; ++one) MarkSuspect(*one, now);
}

void RailProber::NoteAlive(const std::string& node, Nanos now) {
  const auto known = signs_.find(node);
  if (known == signs_.end()) return;
  auto& [latest, before, oldest] = known->second;
  if (now - latest < kSignSpacing) return;
  oldest = std::exchange(before, std::exchange(latest, now));
}

std::vector<Witness> RailProber::WitnessesFor(const Pair& pair) const {
  std::vector<Witness> witnesses;
  for (const Pair* other : by_node_.at(pair.target.key.peer.node))
    if (other != &pair && other->judge.state() != PairState::kUnknown) witnesses.push_back(other->judge.witness());
  if (witnesses.empty()) return {{0, signs_.at(pair.target.key.peer.node).back()}};
  return witnesses;
}

RailProber::Pair* RailProber::WitnessPair(const Pair& pair) const {
  Pair* best = nullptr;
  for (Pair* other : by_node_.at(pair.target.key.peer.node)) {
    const bool may = other != &pair && other->judge.state() == PairState::kUp && !links_down_.contains(other->target.key.own.nic);
    if (may && (best == nullptr || other->judge.witness().until > best->judge.witness().until)) best = other;
  }
  return best;
}

PairVerdict RailProber::Verdict(const Pair& pair, Nanos since) {
  const PairVerdict verdict = VerdictOf(pair.judge.state());
  return verdict == PairVerdict::kAnswering && pair.judge.answered_sent() < since ? PairVerdict::kUnknown : verdict;
}

void RailProber::NoteVerdict(Pair* pair) {
  const PairVerdict verdict = Verdict(*pair, pair->asked_since);
  const PairVerdict large = LargeVerdict(*pair, pair->asked_since);
  const bool news = std::exchange(pair->reported, verdict) != verdict;
  if (std::exchange(pair->reported_large, large) != large || news) ++revision_;
}

void RailProber::Judge(Nanos now) {
  for (auto& [key, pair] : pairs_) {
    const PairState before = pair.judge.state();
    if (before != PairState::kUnknown && pair.judge.Waits(now)) pair.judge.Judge(now, WitnessesFor(pair));
    const PairState after = pair.judge.state();
    if (after != before) NoteVerdict(&pair);
    JudgeLarge(&pair, now);
    const bool unsettled = after == PairState::kLate || after == PairState::kProving || (after == PairState::kSilent && before != after);
    // Renewed at half time, not at every tick: it looks at all pairs.
    if (unsettled && pair.suspect_until - now < policy_.suspicion / 2) SuspectAround(pair, now);
  }
}

std::vector<RailPing> RailProber::Tick(Nanos now) {
  const Nanos elapsed = last_tick_ == 0 ? kRailProbeTick : now - last_tick_;
  last_tick_ = now;
  if (now <= late_after_) Judge(now);
  tokens_ = std::min(policy_.burst_max, tokens_ + policy_.rate_per_s * static_cast<double>(elapsed) / kNanosPerSecond);

  std::vector<Pair*> suspects;
  std::vector<Pair*> others;
  std::set<std::string_view> due_nodes;
  for (auto& [key, pair] : pairs_) {
    if (links_down_.contains(key.own.nic)) continue;
    if (now < pair.suspect_until)
      suspects.push_back(&pair);
    else if (now >= pair.due)
      due_nodes.insert(key.peer.node);
  }
  for (const std::string_view node : due_nodes)
    for (Pair* pair : by_node_.find(node)->second)
      if (now >= pair->suspect_until && now >= pair->due - policy_.together && !links_down_.contains(pair->target.key.own.nic))
        others.push_back(pair);
  // Unanswered probes of a suspect prove nothing until its peer has answered elsewhere.
  const size_t suspect_count = suspects.size();
  for (size_t i = 0; i < suspect_count; ++i) {
    Pair* const witness = WitnessPair(*suspects[i]);
    if (witness != nullptr && now >= witness->suspect_until && now - witness->last_sent >= policy_.witness_interval_min) {
      if (std::find(suspects.begin() + static_cast<std::ptrdiff_t>(suspect_count), suspects.end(), witness) == suspects.end())
        suspects.push_back(witness);
      std::erase(others, witness);
    }
  }
  const auto longest_ago = [](const Pair* a, const Pair* b) { return a->last_sent < b->last_sent; };
  std::sort(suspects.begin(), suspects.end(), longest_ago);
  std::sort(others.begin(), others.end(),
            [](const Pair* a, const Pair* b) { return a->target.active != b->target.active ? a->target.active : a->due < b->due; });
  std::vector<RailPing> pings;
  const double kept = others.empty() ? 0 : tokens_ * (1 - policy_.suspects_share);
  const auto send = [&](const std::vector<Pair*>& due, double floor) {
    for (Pair* pair : due) {
      if (tokens_ - floor < 1) return;
      const bool large = LargeIsDue(*pair, now);
      std::optional<RailPing> ping = Ping(pair, now);
      if (!ping.has_value()) continue;
      tokens_ -= 1;
      pings.push_back(*std::move(ping));
      if (!large || tokens_ - floor < 1) continue;
      std::optional<RailPing> large_ping = LargePing(pair, now);
      if (!large_ping.has_value()) continue;
      tokens_ -= 1;
      pings.push_back(*std::move(large_ping));
    }
  };
  send(suspects, kept);
  send(others, 0);
  FindNext();
  late_after_ = next_tick() + kTickLateMax;
  return pings;
}

void RailProber::FindNext() {
  awaited_ = 0;
  next_due_ = INT64_MAX / 2;
  for (const auto& [key, pair] : pairs_) {
    if (links_down_.contains(key.own.nic)) continue;
    awaited_ += pair.AwaitedAtAll();
    next_due_ = std::min(next_due_, pair.due);
  }
}

Nanos RailProber::next_tick() const {
  const Nanos soon = last_tick_ + kRailProbeTick;
  return awaited_ > 0 || last_tick_ < suspect_until_ ? soon : std::max(soon, next_due_);
}

std::optional<RailPing> RailProber::Ping(Pair* pair, Nanos now) {
  const Nanos interval = Interval(pair->target);
  pair->due = now + interval - interval / 4 + static_cast<Nanos>(Random(*pair, now) % static_cast<uint64_t>(interval / 2));
  const uint64_t sequence = next_sequence_++;
  std::optional<RailPing> ping = Send(pair, RailProbeKind::kPing, kRailProbeBytes, sequence, now);
  if (!ping.has_value()) return std::nullopt;
  pair->judge.Sent(sequence, now);
  pair->last_sent = now;
  return ping;
}

std::optional<RailPing> RailProber::Send(Pair* pair, RailProbeKind kind, size_t length, uint64_t sequence, Nanos now) {
  const RailTarget& target = pair->target;
  const ProbeMacKey* const key = keys_->MacKey(keys_->sending_nonce(), target.key.peer.node, target.nonce);
  if (key == nullptr) return std::nullopt;
  ++counts_.sent;
  const auto bytes = static_cast<uint16_t>(kind == RailProbeKind::kLargePing ? length : 0);
  const RailProbe probe = {kind, target.nonce, keys_->sending_nonce(), pair->id, sequence, now, pair->nic_hash, bytes};
  return RailPing{target.key.own.nic,           target.key.peer, pair->judge.answered_sent(), target.address, target.port,
                  EncodeRailProbe(probe, *key), length};
}

// The other end will know of the pair what there is to know, and while all is well it needs no second ping.
void RailProber::PutOff(const std::string& nic, const std::string& peer, Nanos received) {
  const auto pairs = by_node_.find(peer);
  if (pairs == by_node_.end() || received < suspect_until_) return;
  bool was_next = false;
  for (Pair* pair : pairs->second) {
    const Nanos interval = Interval(pair->target);
    if (pair->target.key.own.nic == nic && pair->judge.state() == PairState::kUp &&
        received - pair->last_sent < policy_.put_off_intervals_max * interval && !LargeIsDue(*pair, received)) {
      was_next |= pair->due == next_due_;
      pair->due = std::max(pair->due, received + interval);
    }
  }
  if (was_next) FindNext();
}

std::optional<RailAnswer> RailProber::Receive(const std::string& nic, const std::string& from, std::span<const uint8_t> bytes,
                                              Nanos received) {
  const std::optional<RailProbe> probe = DecodeRailProbe(bytes);
  if (!probe.has_value()) {
    ++counts_.malformed;
    return std::nullopt;
  }
  const ProbeMacKey* key = nullptr;
  bool known = false;
  const std::string* const sender = keys_->FindNode(probe->from_nonce, from, [&](const std::string& node) {
    const ProbeMacKey* const candidate = keys_->MacKey(probe->to_nonce, node, probe->from_nonce);
    known |= candidate != nullptr;
    if (candidate == nullptr || !IsAuthentic(bytes, *candidate)) return false;
    key = candidate;
    return true;
  });
  if (sender == nullptr) {
    ++(known ? counts_.forged : counts_.unknown);
    return std::nullopt;
  }
  if (probe->kind != RailProbeKind::kPing && probe->kind != RailProbeKind::kLargePing) {
    OnPong(nic, from, *probe, received);
    return std::nullopt;
  }
  if (probe->nic_hash != Fnv1a64(NicKey{node_, nic}.ToString())) {
    ++counts_.misrouted;
    return std::nullopt;
  }
  RailProbe pong = *probe;
  std::swap(pong.to_nonce, pong.from_nonce);
  if (probe->kind == RailProbeKind::kPing) {
    PutOff(nic, *sender, received);
    pong.kind = RailProbeKind::kPong;
    return RailAnswer{EncodeRailProbe(pong, *key)};
  }
  return AnswerLarge(nic, from, *sender, pong, *key, received);
}

void RailProber::OnPong(const std::string& nic, const std::string& from, const RailProbe& pong, Nanos received) {
  const auto key = keys_by_id_.find(pong.pair);
  if (key == keys_by_id_.end()) {
    counts_.unexpected += !OnStrayPong(nic, from, pong, received);
    return;
  }
  Pair& pair = pairs_.at(key->second);
  const bool awaited = pair.AwaitedAtAll() && !links_down_.contains(key->second.own.nic);
  if (pong.from_nonce != pair.target.nonce || from != pair.target.address) {
    ++counts_.unknown;
  } else if (key->second.own.nic != nic || pong.nic_hash != pair.nic_hash) {
    ++counts_.misrouted;
  } else if (pong.kind == RailProbeKind::kLargeReceived) {
    if (!pair.large.Arrived(pong.sequence)) ++counts_.unexpected;
    if (pong.bytes == 0) SetPathMtu(&pair, pair.large.full(), received);
  } else if (pong.kind == RailProbeKind::kLargePong) {
    if (!pair.large.Answered(pong.sequence, received)) ++counts_.unexpected;
    awaited_ -= awaited && !pair.AwaitedAtAll();
    NoteVerdict(&pair);
  } else if (!pair.judge.Answered(pong.sequence, received)) {
    ++counts_.unexpected;
  } else {
    awaited_ -= awaited && !pair.AwaitedAtAll();
    NoteVerdict(&pair);
  }
}

void RailProber::LostHere(const std::string& nic, std::string_view from) {
  for (auto& [key, pair] : pairs_) {
    if (key.own.nic != nic || (!from.empty() && pair.target.address != from)) continue;
    pair.judge.Forget();
    pair.large.Forget();
  }
}

}  // namespace r2cc::health
