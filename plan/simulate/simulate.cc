#include "plan/simulate/simulate.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

#include "plan/schedule/progress.h"
#include "plan/simulate/fabric_routes.h"
#include "plan/simulate/sharing.h"

namespace r2cc::plan {
namespace {

// Events that differ by less than this part of the time come together: rounding would part what equal members do at once.
constexpr double kSameMoment = 1e-12;

std::string WhyNot(const Schedule& schedule, const FabricModel& fabric, const SimulateOptions& options) {
  if (fabric.members_per_server == 0 || schedule.members() != fabric.members())
    return "the schedule has " + std::to_string(schedule.members()) + " members, the fabric has room for " +
           std::to_string(fabric.members());
  for (const RailChange& change : options.changes) {
    if (change.server >= fabric.rails_bytes_per_s.size() || change.rail >= fabric.rails_bytes_per_s[change.server].size())
      return "there is no rail " + std::to_string(change.rail) + " at server " + std::to_string(change.server);
  }
  if (!options.use_rotation) return "";
  if (schedule.Rotation().size() < 2) return "the schedule has no rotation";
  if (fabric.members_per_server != 1 || fabric.use != RailSharing::kPooled || fabric.reach != RailReach::kFull || !options.changes.empty())
    return "a rotation needs one member a server, pooled rails that reach each other, and rails that stay as they are";
  const FabricRoutes routes(fabric);
  for (const uint32_t member : schedule.Rotation())
    if (routes.ServerRate(member) != routes.ServerRate(schedule.Rotation()[0])) return "members of the rotation have unequal ports";
  return "";
}

class Run {
 public:
  Run(const Schedule& schedule, const FabricModel& fabric, const SimulateOptions& options)
      : schedule_(schedule),
        options_(options),
        routes_(fabric),
        sharing_(routes_.Capacities()),
        progress_(schedule, options.use_rotation),
        in_rotation_(schedule.members(), false) {
    if (options.use_rotation)
      for (const uint32_t member : schedule.Rotation()) in_rotation_[member] = true;
    else
      result_.received_bytes.assign(fabric.rails_bytes_per_s.size(), 0);
  }

  SimulateResult Go() {
    const auto begin = [this](const Transfer& transfer) { Begin(transfer); };
    progress_.Start(begin);
    while (true) {
      sharing_.Settle([this](uint32_t stream) { Repace(flow_of_stream_[stream]); });
      const double next = std::min(NextEvent(), NextChange());
      if (next == std::numeric_limits<double>::infinity()) break;
      now_ = next;
      const double same = now_ * (1 + kSameMoment);
      while (NextChange() <= same) Change();
      while (NextEvent() <= same) {
        const uint32_t flow = std::get<1>(events_.top());
        events_.pop();
        flows_[flow].waiting ? Move(flow) : End(flow, begin);
      }
      // With nothing left to move, rails may change as they like.
      if (progress_.finished()) break;
    }
    result_.time_s = now_;
    if (!progress_.finished()) result_.error = Stuck();
    return std::move(result_);
  }

 private:
  struct Flow {
    Transfer transfer;
    Range range;
    double begin_s = 0;
    double left_bytes = 0;
    double rate = 0;
    double paced_s = 0;  // when left_bytes was true
    uint64_t version = 0;
    bool active = false;
    bool waiting = false;  // for its latency to pass
    std::vector<uint32_t> streams;
  };
  using Event = std::tuple<double, uint32_t, uint64_t>;  // time, flow, its version

  double NextEvent() {
    while (!events_.empty() && flows_[std::get<1>(events_.top())].version != std::get<2>(events_.top())) events_.pop();
    return events_.empty() ? std::numeric_limits<double>::infinity() : std::get<0>(events_.top());
  }
  double NextChange() const {
    return next_change_ < options_.changes.size() ? std::max(now_, options_.changes[next_change_].time_s)
                                                  : std::numeric_limits<double>::infinity();
  }
  void At(double time_s, uint32_t flow) { events_.emplace(time_s, flow, ++flows_[flow].version); }

  void Begin(const Transfer& transfer) {
    uint32_t number = static_cast<uint32_t>(flows_.size());
    if (unused_.empty()) {
      flows_.emplace_back();
    } else {
      number = unused_.back();
      unused_.pop_back();
    }
    Flow& flow = flows_[number];
    flow.transfer = transfer;
    flow.range = schedule_.RangeOf(transfer.send.block, transfer.send.blocks);
    flow.begin_s = now_;
    flow.left_bytes = static_cast<double>(flow.range.bytes()) + routes_.fabric().step_overhead_bytes;
    flow.active = true;
    flow.waiting = routes_.fabric().step_latency_s > 0;
    flow.waiting ? At(now_ + routes_.fabric().step_latency_s, number) : Move(number);
  }

  void Move(uint32_t number) {
    Flow& flow = flows_[number];
    flow.waiting = false;
    flow.rate = 0;
    flow.paced_s = now_;
    ++flow.version;
    if (flow.left_bytes > 0) {
      Route(number);
    } else {
      At(now_, number);
    }
  }

  void Route(uint32_t number) {
    Flow& flow = flows_[number];
    found_.clear();
    const Transfer& transfer = flow.transfer;
    routes_.Find(transfer.from, transfer.send.peer, transfer.from_lane, found_);
    if (options_.use_rotation && !found_.empty()) Fold(transfer);
    const double weight = schedule_.Weight(transfer.from, transfer.from_lane);
    for (const FabricRoutes::Route& route : found_) {
      if (route.count == 0) {
        At(now_, number);
        return;
      }
      const uint32_t stream = sharing_.Add(weight, route.uses, route.count);
      if (flow_of_stream_.size() <= stream) flow_of_stream_.resize(stream + 1);
      flow_of_stream_[stream] = number;
      flow.streams.push_back(stream);
    }
  }

  // One transfer represents those of all members of the rotation: the others take at their ports what it takes at the first member's;
  // at the port of a member outside, all of them meet.
  void Fold(const Transfer& transfer) {
    FabricRoutes::Route& route = found_.front();
    const auto all = static_cast<double>(schedule_.Rotation().size());
    const bool from_inside = in_rotation_[transfer.from];
    const bool to_inside = in_rotation_[transfer.send.peer];
    if (from_inside && to_inside) {
      std::vector<FabricRoutes::Route> back;
      routes_.Find(transfer.send.peer, transfer.from, transfer.from_lane, back);
      route.uses[1] = back.front().uses[1];
    } else if (from_inside) {
      route.uses[1].amount = all;
    } else if (to_inside) {
      route.uses[0].amount = all;
    }
  }

  void Repace(uint32_t number) {
    Flow& flow = flows_[number];
    flow.left_bytes = std::max(0.0, flow.left_bytes - flow.rate * (now_ - flow.paced_s));
    flow.paced_s = now_;
    flow.rate = 0;
    for (const uint32_t stream : flow.streams) flow.rate += sharing_.rate(stream);
    ++flow.version;
    if (flow.rate > 0) At(now_ + flow.left_bytes / flow.rate, number);
  }

  void Leave(Flow& flow) {
    for (const uint32_t stream : flow.streams) sharing_.Remove(stream);
    flow.streams.clear();
  }

  void End(uint32_t number, Progress::Begin begin) {
    Flow& flow = flows_[number];
    Leave(flow);
    flow.active = false;
    ++flow.version;
    ++result_.transfers;
    const Transfer transfer = flow.transfer;
    if (!options_.use_rotation && routes_.ServerOf(transfer.from) != routes_.ServerOf(transfer.to))
      result_.received_bytes[routes_.ServerOf(transfer.to)] += static_cast<double>(flow.range.bytes());
    if (options_.trace != nullptr)
      (*options_.trace)({flow.begin_s, now_, transfer.from, transfer.from_lane, transfer.send.peer, transfer.to_lane,
                         transfer.receive.kind == StepKind::kReceiveReduce, flow.range});
    unused_.push_back(number);
    progress_.Complete(transfer, begin);
  }

  void Change() {
    const RailChange& change = options_.changes[next_change_++];
    routes_.Apply(change);
    const std::vector<double> capacities = routes_.Capacities();
    for (uint32_t port = 0; port < capacities.size(); ++port)
      if (capacities[port] != sharing_.capacity(port)) sharing_.SetCapacity(port, capacities[port]);
    for (uint32_t number = 0; number < flows_.size(); ++number) {
      Flow& flow = flows_[number];
      if (!flow.active || flow.waiting) continue;
      Leave(flow);
      Repace(number);
      Route(number);
    }
  }

  std::string Stuck() const {
    for (const Flow& flow : flows_)
      if (flow.active)
        return "no working rail joins server " + std::to_string(routes_.ServerOf(flow.transfer.from)) + " and server " +
               std::to_string(routes_.ServerOf(flow.transfer.send.peer));
    return progress_.Stuck();
  }

  const Schedule& schedule_;
  const SimulateOptions& options_;
  FabricRoutes routes_;
  Sharing sharing_;
  Progress progress_;
  std::vector<bool> in_rotation_;
  double now_ = 0;
  size_t next_change_ = 0;
  std::vector<Flow> flows_;
  std::vector<uint32_t> unused_;
  std::vector<uint32_t> flow_of_stream_;
  std::vector<FabricRoutes::Route> found_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  SimulateResult result_;
};

}  // namespace

SimulateResult Simulate(const Schedule& schedule, const FabricModel& fabric, const SimulateOptions& options) {
  SimulateResult result;
  result.error = WhyNot(schedule, fabric, options);
  return result.error.empty() ? Run(schedule, fabric, options).Go() : result;
}

}  // namespace r2cc::plan
