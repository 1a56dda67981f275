#include "plan/collective/choose.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/core/check.h"
#include "plan/schedule/cost.h"
#include "plan/schedule/generators.h"

namespace r2cc::plan {
namespace {

// Members whose ports differ by less than this part are equal: shares and rates come from arithmetic.
constexpr double kEqual = 1e-9;
// A schedule must be faster by this part to be preferred to a simpler one, which comes before it.
constexpr double kWorthIt = 1e-6;

// By so much OptCC must be faster than the direct schedule.
constexpr double kOptccLead = 0.02;

std::string Text(const char* format, double a, double b = 0) {
  char text[160];
  std::snprintf(text, sizeof text, format, a, b);
  return text;
}

uint32_t Members(const Ports& ports) { return static_cast<uint32_t>(ports.bytes_per_s.size()); }

uint32_t SlowestMember(const Ports& ports) {
  return static_cast<uint32_t>(std::min_element(ports.bytes_per_s.begin(), ports.bytes_per_s.end()) - ports.bytes_per_s.begin());
}

bool Degraded(const Ports& ports, double bytes_per_s) { return bytes_per_s < ports.healthy_bytes_per_s * (1 - kEqual); }

uint32_t DegradedMembers(const Ports& ports) {
  return static_cast<uint32_t>(
      std::count_if(ports.bytes_per_s.begin(), ports.bytes_per_s.end(), [&](double rate) { return Degraded(ports, rate); }));
}

// Channels that the busiest rail of the slowest member carries if each dead rail's channel moves as a whole.
uint32_t ChannelsOnARail(const Ports& ports) {
  const uint32_t left = RailsLeft(ports, ports.bytes_per_s[SlowestMember(ports)]);
  return (ports.rails + left - 1) / left;
}

// The rate that a ring gets from the slowest member if rails are not shared.
double PinnedRate(const Ports& ports) {
  return ports.rails == 1 ? ports.bytes_per_s[SlowestMember(ports)] : ports.healthy_bytes_per_s / ChannelsOnARail(ports);
}

class Choice {
 public:
  Choice(uint64_t bytes, const Ports& ports, uint32_t segments_max)
      : ports_(ports),
        bytes_(static_cast<double>(bytes)),
        members_(Members(ports)),
        segments_max_(segments_max),
        slow_(SlowestMember(ports)) {
    decision_.bound_s = LowerBoundTime(bytes_, ports.bytes_per_s);
    decision_.ring_s = FaultFreeRingTime(members_, bytes_, ports.healthy_bytes_per_s);
  }

  Decision Go() {
    Rings();
    const uint32_t degraded = DegradedMembers(ports_);
    if (members_ >= 3 && degraded == 1) OneDegraded();
    if (degraded > 1 && members_ - degraded >= 2) Recursive();
    Direct();
    std::vector<Candidate>& candidates = decision_.candidates;
    for (Candidate& candidate : candidates) {
      candidate.ratio_to_ring = decision_.ring_s > 0 ? candidate.time_s / decision_.ring_s : 0;
      candidate.ratio_to_bound = decision_.bound_s > 0 ? candidate.time_s / decision_.bound_s : 0;
    }
    const Candidate* best = &candidates.front();
    for (const Candidate& candidate : candidates)
      if (candidate.time_s < best->time_s * (1 - kWorthIt)) best = &candidate;
    // OptCC's lanes need the pace that its form assumes, and the form of the direct schedule is 1 to 2 % above what it takes in an outside
    // simulator, where it won at 16 members: docs/internals/schedules.md.
    if (best->kind == ScheduleKind::kOptcc)
      for (const Candidate& candidate : candidates)
        if (candidate.kind == ScheduleKind::kDirect && best->time_s > candidate.time_s * (1 - kOptccLead)) best = &candidate;
    decision_.chosen = *best;
    std::stable_sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
      const bool a_chosen = a.kind == decision_.chosen.kind;
      const bool b_chosen = b.kind == decision_.chosen.kind;
      return a_chosen != b_chosen ? a_chosen : a.time_s < b.time_s;
    });
    decision_.why = Why();
    return std::move(decision_);
  }

 private:
  double Slowest() const { return ports_.bytes_per_s[slow_]; }
  double Latency() const { return ports_.step_latency_s; }
  double Overhead() const { return ports_.step_overhead_bytes; }

  // The best of the candidates that `time(candidate)` is given.
  template <typename Time>
  void Offer(const std::vector<Candidate>& choices, Time time) {
    Candidate best;
    for (Candidate candidate : choices) {
      candidate.time_s = time(candidate);
      if (best.time_s == 0 || candidate.time_s < best.time_s * (1 - kWorthIt)) best = candidate;
    }
    decision_.candidates.push_back(std::move(best));
  }
  // Multiples of `group`, and what is less than one.
  std::vector<Candidate> EachSegments(ScheduleKind kind, uint32_t group) const {
    std::vector<Candidate> choices;
    for (uint32_t k = 1; k <= segments_max_; ++k)
      if (k < group || k % group == 0) choices.push_back({.kind = kind, .segments = k});
    return choices;
  }
  static std::vector<Candidate> EachChunks(ScheduleKind kind, double y) {
    std::vector<Candidate> choices;
    for (uint32_t k = 1; k <= kChunksMax; k *= 2) choices.push_back({.kind = kind, .segments = k, .y = y});
    return choices;
  }
  void Note(std::string note) { decision_.candidates.back().note = std::move(note); }

  void Rings() {
    const std::vector<double> pinned(members_, PinnedRate(ports_));
    // Each channel has messages of its own.
    Offer({{.kind = ScheduleKind::kRing}},
          [&](const Candidate&) { return RingTime(bytes_, pinned, Latency(), Overhead() * ports_.rails); });
    if (ports_.rails > 1 && ChannelsOnARail(ports_) > 1)
      Note("a rail of member " + std::to_string(slow_) + Text(" carries %.0f channels", ChannelsOnARail(ports_)));
    Offer({{.kind = ScheduleKind::kBalance}},
          [&](const Candidate&) { return RingTime(bytes_, ports_.bytes_per_s, Latency(), Overhead()); });
    if (Degraded(ports_, Slowest()))
      Note("member " + std::to_string(slow_) +
           Text(" sets the pace with %.1f %% of its port", 100 * Slowest() / ports_.healthy_bytes_per_s));
  }

  void OneDegraded() {
    const double healthy = ports_.healthy_bytes_per_s;
    const double kept = Slowest() / healthy;
    std::vector<Candidate> choices = EachChunks(ScheduleKind::kR2ccAllReduce, 1 - kept);
    const std::vector<Candidate> more = EachChunks(ScheduleKind::kR2ccAllReduce, R2ccOptimalY(members_, 1 - kept));
    choices.insert(choices.end(), more.begin(), more.end());
    Offer(choices, [&](const Candidate& c) {
      return R2ccAllReduceTime(members_, bytes_, healthy, 1 - kept, c.y, c.segments, Latency(), 1, Overhead());
    });
    Note(Text("Y = %.4f, then member %.0f", decision_.candidates.back().y, slow_) + " is served last");
    Offer(EachSegments(ScheduleKind::kOptcc, 4),
          [&](const Candidate& c) { return OptccTime(members_, bytes_, healthy, kept, c.segments, Latency(), Overhead()); });
    Note(Text("%.1f %% of the bytes by the four stages", 100 * OptccStagedPart(members_, kept)));
  }

  void Recursive() {
    Offer(EachChunks(ScheduleKind::kRecursive, 0),
          [&](const Candidate& c) { return RecursiveTime(bytes_, ports_.bytes_per_s, c.segments, Latency(), Overhead()); });
    Note("member " + std::to_string(slow_) + " is served last");
  }

  void Direct() {
    Offer(EachSegments(ScheduleKind::kDirect, 1),
          [&](const Candidate& c) { return DirectTime(bytes_, ports_.bytes_per_s, c.segments, Latency(), Overhead()); });
    const std::vector<double> shares = DirectShares(ports_.bytes_per_s);
    const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
    Note(Text("owners' shares %.4f to %.4f, ", *least, *most) + std::to_string(members_ - 1) + " flows each");
  }

  std::string Why() const {
    const Candidate& chosen = decision_.chosen;
    std::string why = std::string(ScheduleName(chosen.kind)) + Text(": predicted %.4g ms", 1e3 * chosen.time_s);
    if (decision_.bound_s > 0) why += Text(", %.2f %% over the lower bound", 100 * (chosen.ratio_to_bound - 1));
    if (decision_.candidates.size() > 1) {
      const Candidate& next = decision_.candidates[1];
      why += std::string("; next is ") + ScheduleName(next.kind) +
             (next.time_s > chosen.time_s * (1 + kWorthIt) ? Text(", %.2f %% slower", 100 * (next.time_s / chosen.time_s - 1))
              : next.time_s < chosen.time_s * (1 - kWorthIt)
                  ? Text(", %.2f %% faster if its lanes keep their pace", 100 * (1 - next.time_s / chosen.time_s))
                  : ", no faster and less simple");
    }
    return why;
  }

  const Ports& ports_;
  double bytes_;
  uint32_t members_;
  uint32_t segments_max_;
  uint32_t slow_;
  Decision decision_;
};

}  // namespace

const char* ScheduleName(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kRing: return "ring";
    case ScheduleKind::kBalance: return "balance";
    case ScheduleKind::kR2ccAllReduce: return "r2cc-allreduce";
    case ScheduleKind::kRecursive: return "recursive";
    case ScheduleKind::kOptcc: return "optcc";
    case ScheduleKind::kDirect: return "direct";
  }
  return "?";
}

uint32_t RailsLeft(const Ports& ports, double bytes_per_s) {
  const double left = std::round(bytes_per_s / ports.healthy_bytes_per_s * ports.rails);
  return static_cast<uint32_t>(std::clamp(left, 1.0, static_cast<double>(ports.rails)));
}

Decision Choose(uint64_t bytes, const Ports& ports, uint32_t segments_max) {
  R2CC_CHECK(Members(ports) >= 2 && ports.rails >= 1 && segments_max >= 1);
  for (const double rate : ports.bytes_per_s) R2CC_CHECK(rate > 0 && rate <= ports.healthy_bytes_per_s * (1 + kEqual));
  return Choice(bytes, ports, segments_max).Go();
}

std::unique_ptr<Schedule> MakeCandidate(const Candidate& candidate, uint64_t bytes, const Ports& ports) {
  const uint32_t members = Members(ports);
  const uint32_t slow = SlowestMember(ports);
  const double kept = ports.bytes_per_s[slow] / ports.healthy_bytes_per_s;
  switch (candidate.kind) {
    case ScheduleKind::kRing: return MakeRing(members, bytes, {}, ports.rails);
    case ScheduleKind::kBalance: return MakeRing(members, bytes);
    case ScheduleKind::kR2ccAllReduce: return MakeR2ccAllReduce(members, bytes, {slow}, 1 - kept, candidate.y, candidate.segments);
    case ScheduleKind::kRecursive: return MakeRecursive(ports.bytes_per_s, bytes, candidate.segments);
    case ScheduleKind::kOptcc: return MakeOptcc(members, bytes, slow, kept, candidate.segments);
    case ScheduleKind::kDirect:
      return MakeDirect(Collective::kAllReduce, bytes, candidate.segments, DirectShares(ports.bytes_per_s), ports.bytes_per_s);
  }
  return nullptr;
}

Chooser::Chooser(Ports ports) : ports_(std::move(ports)) {}

const Decision& Chooser::Get(uint64_t bytes) {
  if (const auto found = made_.find(bytes); found != made_.end()) return found->second;
  if (made_.size() >= kDecisionsMax) made_.clear();
  return made_.emplace(bytes, Choose(bytes, ports_)).first->second;
}

}  // namespace r2cc::plan
