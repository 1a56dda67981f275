#include "tests/sim/faults.h"

#include <algorithm>
#include <utility>

namespace r2cc::sim {

void Faults::Plan(const Fault& fault) {
  if (fault.moment.has_value()) {
    armed_.push_back(fault);
    return;
  }
  ++active_;
  world_.network->timeline()->At(fault.at, [this, fault] {
    Begin(fault);
    --active_;
    last_healed_ = std::max(last_healed_, world_.network->timeline()->now());
  });
}

void Faults::At(Moment moment, int sender, int receiver, net::LinkId link) {
  Timeline* timeline = world_.network->timeline();
  for (size_t i = 0; i < armed_.size(); ++i) {
    Fault& armed = armed_[i];
    if (armed.moment != moment || timeline->now() < armed.at || --armed.countdown > 0) continue;
    Fault fault = armed;
    armed_.erase(armed_.begin() + static_cast<ptrdiff_t>(i));
    fault.moment.reset();
    fault.a = world_.network->NodeOf(sender);
    fault.b = world_.network->NodeOf(receiver);
    // The link at hand while it connects or proves; another one while it is fenced or replayed.
    const bool same = moment == Moment::kLinkOpening || moment == Moment::kLinkProving;
    fault.rail_a = (link + (same ? 0 : 1)) % Rails(fault.a);
    fault.rail_b = (link + (same ? 0 : 1)) % Rails(fault.b);
    // Somewhere within the next two round trips.
    fault.at = timeline->now() + timeline->random().Between(0, 150'000);
    Plan(fault);
    return;
  }
}

void Faults::Heal(const Fault& fault, Nanos after, std::function<void()> what) {
  ++active_;
  world_.network->timeline()->After(after, [this, fault, what = std::move(what)] {
    if (world_.log) world_.log(std::string("healed: ") + Name(fault.kind));
    what();
    --active_;
    last_healed_ = world_.network->timeline()->now();
    world_.changed();
  });
}

void Faults::ReportLink(Port port, bool up) {
  world_.network->timeline()->After(world_.network->timeline()->random().Between(50'000, 1'000'000), [this, port, up] {
    reported_up_[port] = up;
    At(port.host)->RailState(port.rail, up);
  });
}

void Faults::Begun(Process* process) const {
  for (const auto& [port, up] : reported_up_)
    if (port.host == process->node() && !up) process->RailState(port.rail, false);
}

void Faults::ReportCarrier(Port port, bool up) {
  if (HasLinkMonitor(port)) ReportLink(port, up);
  if (world_.daemons != nullptr) world_.daemons->Carrier(port, up);
}

void Faults::CutPorts(const Fault& fault, const std::vector<Port>& ports, const std::vector<Port>& reported) {
  for (const Port port : ports) world_.network->BlockPort(port);
  for (const Port port : reported) ReportCarrier(port, false);
  if (world_.rails != nullptr)
    for (const Port port : reported) world_.rails->Carrier(port, false);
  Heal(fault, fault.duration, [this, ports, reported] {
    for (const Port port : ports) world_.network->UnblockPort(port);
    for (const Port port : reported) ReportCarrier(port, true);
    if (world_.rails != nullptr)
      for (const Port port : reported) world_.rails->Carrier(port, true);
  });
}

void Faults::Reset(Port here, Port there, int ends) {
  world_.network->Reset(here, there, ends);
  if (world_.rails != nullptr) world_.rails->Reset(here, there, ends, true);
}

void Faults::BlockPath(const Fault& fault, Port from, Port to) {
  world_.network->Block(from, to);
  Heal(fault, fault.duration, [this, from, to] { world_.network->Unblock(from, to); });
}

plan::Plan Faults::Page() const {
  plan::Plan plan;
  for (const auto& [at, verdict] : verdicts_)
    plan.nics.push_back({HostName(at.first), RailName(at.second),
                         verdict.failed ? plan::PlannedState::kFailed : plan::PlannedState::kHealthy, verdict.weight_permille});
  for (const auto& path : broken_paths_) {
    const auto [first, second] = std::minmax(path.first, path.second);
    plan.broken_paths.push_back({HostName(first.host), RailName(first.rail), HostName(second.host), RailName(second.rail)});
  }
  return plan;
}

void Faults::Begin(const Fault& fault) {
  ++injected_[static_cast<size_t>(fault.kind)];
  Network* network = world_.network;
  Daemons* const daemons = world_.daemons;
  Timeline* timeline = network->timeline();
  const Port here{fault.a, fault.rail_a}, there{fault.b, fault.rail_b};
  const Port oob_here{fault.a, kOobRail}, oob_there{fault.b, kOobRail};
  if (world_.log)
    world_.log(std::string("fault: ") + Name(fault.kind) + ", " + std::to_string(fault.a) + "/" + std::to_string(fault.rail_a) + " -> " +
               std::to_string(fault.b) + "/" + std::to_string(fault.rail_b) + " for " + std::to_string(fault.duration / 1000) +
               " us, degree " + std::to_string(fault.degree));
  const auto rails_of = [&](int host) {
    std::vector<Port> ports;
    for (int rail = 0; rail < Rails(host); ++rail) ports.push_back({host, rail});
    return ports;
  };
  const auto set_verdict = [&](net::RailVerdict verdict) {
    verdicts_[{fault.a, fault.rail_a}] = verdict;
    for (Process* process : world_.processes) process->ApplyVerdicts();
    Heal(fault, fault.duration, [this, at = std::pair(fault.a, fault.rail_a)] {
      verdicts_.erase(at);
      for (Process* process : world_.processes) process->ApplyVerdicts();
    });
  };
  switch (fault.kind) {
    case FaultKind::kCutSenderSees: CutPorts(fault, {here}, {here}); break;
    case FaultKind::kCutReceiverSees: CutPorts(fault, {there}, {there}); break;
    case FaultKind::kCutBothSee: CutPorts(fault, {here, there}, {here, there}); break;
    case FaultKind::kCutNoneSees: CutPorts(fault, {here}, {}); break;
    case FaultKind::kDeadAtStart:
      if (HasLinkMonitor(here)) At(fault.a)->RailState(fault.rail_a, false);
      CutPorts(fault, {here}, {here});
      break;
    case FaultKind::kSilenceForward: BlockPath(fault, here, there); break;
    case FaultKind::kSilenceBack: BlockPath(fault, there, here); break;
    case FaultKind::kSilenceBoth:
      BlockPath(fault, here, there);
      BlockPath(fault, there, here);
      break;
    case FaultKind::kFaultInConnect:
    case FaultKind::kFaultInProof:
    case FaultKind::kFaultInFence:
    case FaultKind::kFaultInReplay:
    case FaultKind::kLastAckLost:
      switch (fault.degree % 5) {
        case 0: CutPorts(fault, {here}, {here}); break;
        case 1: CutPorts(fault, {there}, {there}); break;
        case 2: CutPorts(fault, {here}, {}); break;
        case 3: BlockPath(fault, there, here); break;
        default: Reset(here, there, 1 + fault.degree / 5 % 3); break;
      }
      break;
    case FaultKind::kClogShort:
    case FaultKind::kClogLong:
      network->Hold(here, there, timeline->now() + fault.duration);
      network->Hold(there, here, timeline->now() + fault.duration);
      Heal(fault, fault.duration, [] {});
      break;
    case FaultKind::kFlap: {
      Nanos when = 0;
      for (int i = 0; i < fault.degree; ++i) {
        Fault cut = fault;
        cut.kind = timeline->random().Chance(2) ? FaultKind::kCutSenderSees : FaultKind::kCutNoneSees;
        cut.duration = timeline->random().Between(kNanosPerMs, 300 * kNanosPerMs);
        cut.at = timeline->now() + when;
        when += cut.duration + timeline->random().Between(kNanosPerMs, 300 * kNanosPerMs);
        Plan(cut);
      }
      break;
    }
    case FaultKind::kGray:
      network->Slow(here, fault.degree);
      Heal(fault, fault.duration, [network, here] { network->Slow(here, 1); });
      break;
    case FaultKind::kSwallowed:
    case FaultKind::kDiesSlowly: {
      const int lost_permille = fault.kind == FaultKind::kSwallowed ? 1000 : 900;
      const bool oob = fault.degree % 8 == 0, forward = fault.degree / 8 % 2 == 0;
      const Port one = oob ? oob_here : here, other = oob ? oob_there : there;
      network->LosePackets(forward ? one : other, forward ? other : one, fault.degree / 16, lost_permille);
      break;
    }
    case FaultKind::kLargeLost: {
      std::vector<std::pair<Port, Port>> paths;
      if (fault.degree % 3 != 1) paths.emplace_back(here, there);
      if (fault.degree % 3 != 0) paths.emplace_back(there, here);
      for (const auto& [from, to] : paths) network->BlockLarge(from, to);
      Heal(fault, fault.duration, [network, paths] {
        for (const auto& [from, to] : paths) network->UnblockLarge(from, to);
      });
      break;
    }
    case FaultKind::kReset: Reset(here, there, fault.degree); break;
    case FaultKind::kRailReportedDown:
      ReportLink(here, false);
      Heal(fault, fault.duration, [this, here] { ReportLink(here, true); });
      break;
    case FaultKind::kConnectRefused:
      network->Refuse(there, true);
      network->Reset(here, there, 3);
      Heal(fault, fault.duration, [network, there] { network->Refuse(there, false); });
      break;
    case FaultKind::kConnectUnanswered:
      network->Swallow(there, true);
      network->Reset(here, there, 3);
      Heal(fault, fault.duration, [network, there] { network->Swallow(there, false); });
      break;
    case FaultKind::kOobLost: CutPorts(fault, {oob_here}, {}); break;
    case FaultKind::kOobReset: network->Reset(oob_here, oob_there, fault.degree); break;
    case FaultKind::kPartition: {
      std::vector<Port> from = rails_of(fault.a), to = rails_of(fault.b);
      from.push_back(oob_here);
      to.push_back(oob_there);
      for (const Port f : from)
        for (const Port t : to) {
          BlockPath(fault, f, t);
          BlockPath(fault, t, f);
        }
      break;
    }
    case FaultKind::kAllRailsDown:
    case FaultKind::kBeyondDeadline:
      CutPorts(fault, rails_of(fault.a), fault.degree % 2 == 0 ? rails_of(fault.a) : std::vector<Port>{});
      break;
    case FaultKind::kCloseLate:
      At(fault.a)->io().closing.late_most = fault.degree * kNanosPerMs;
      Heal(fault, fault.duration, [process = At(fault.a)] { process->io().closing.late_most = 0; });
      break;
    case FaultKind::kCloseFails:
      At(fault.a)->io().closing.fails = true;
      Heal(fault, fault.duration, [process = At(fault.a)] {
        process->io().closing.fails = false;
        process->Wake();
      });
      break;
    case FaultKind::kCloseNever:
      cannot_close_[fault.b] = timeline->now();
      At(fault.b)->io().closing.fails = true;
      CutPorts(fault, {there}, {there});
      break;
    case FaultKind::kDeviceLost:
      if (world_.rails != nullptr) world_.rails->Device(here, true);
      At(fault.a)->Device(fault.rail_a, true);
      Heal(fault, fault.duration, [this, here] {
        if (world_.rails != nullptr) world_.rails->Device(here, false);
        At(here.host)->Device(here.rail, false);
      });
      break;
    case FaultKind::kRenumbered: {
      const Port port = fault.degree == 0 ? here : there;
      network->Renumber(port);
      network->BlockPort(port);
      if (world_.rails != nullptr) world_.rails->LoseAddress(port);
      ReportCarrier(port, false);
      Heal(fault, fault.duration, [this, port] {
        world_.network->UnblockPort(port);
        if (world_.rails != nullptr) world_.rails->NewAddress(port);
        if (HasLinkMonitor(port)) At(port.host)->NewAddress(port.rail);
      });
      break;
    }
    case FaultKind::kQueuePairError: world_.rails->Reset(here, there, 1 + fault.degree % 3, false); break;
    case FaultKind::kStatus: world_.rails->FailCompletion(fault.a, fault.degree); break;
    case FaultKind::kPostFails: world_.rails->FailPost(fault.a, fault.degree); break;
    case FaultKind::kSlowCalls:
      world_.rails->SlowCalls(fault.a, fault.degree * kNanosPerMs);
      Heal(fault, fault.duration, [this, host = fault.a] { world_.rails->SlowCalls(host, 0); });
      break;
    case FaultKind::kStalledPair: world_.rails->StallPairs(here, there, fault.degree); break;
    case FaultKind::kStalledDevice:
      world_.rails->StallDevice(here, fault.degree, true);
      Heal(fault, fault.duration, [this, here, fault] { world_.rails->StallDevice(here, fault.degree, false); });
      break;
    case FaultKind::kCompletionError: world_.rails->BreakCompletions(here, there); break;
    case FaultKind::kVerdict: set_verdict({.failed = true}); break;
    case FaultKind::kPathVerdict:
      broken_paths_.emplace(here, there);
      for (Process* process : world_.processes) process->ApplyVerdicts();
      Heal(fault, fault.duration, [this, path = std::pair(here, there)] {
        broken_paths_.erase(path);
        for (Process* process : world_.processes) process->ApplyVerdicts();
      });
      break;
    case FaultKind::kWeight: set_verdict({.weight_permille = static_cast<uint16_t>(fault.degree)}); break;
    case FaultKind::kStopShort:
    case FaultKind::kStopLong: {
      Process* process = At(fault.a);
      process->Stop();
      Heal(fault, fault.duration, [process] { process->Continue(); });
      break;
    }
    case FaultKind::kPause: At(fault.a)->Pause(fault.duration); break;
    case FaultKind::kReaderStuck:
      At(fault.a)->io().reader_stuck = true;
      Heal(fault, fault.duration, [process = At(fault.a)] {
        process->io().reader_stuck = false;
        process->Wake();
      });
      break;
    case FaultKind::kDeath:
    case FaultKind::kDeathHeldOpen:
      deaths_[fault.a] = gone_[fault.a] = timeline->now();
      At(fault.a)->Kill(fault.kind == FaultKind::kDeathHeldOpen);
      break;
    case FaultKind::kCrash: {
      Process* const process = At(fault.a);
      // The last run is there to end well.
      if (process->dead() || world_.runs->IsOfLast(*process)) break;
      deaths_[process->host()] = gone_[process->host()] = timeline->now();
      process->Kill(/*child_holds_sockets=*/false);
      break;
    }
    case FaultKind::kVanish:
      gone_[fault.a] = timeline->now();
      for (const Port port : rails_of(fault.a)) network->BlockPort(port);
      network->BlockPort(oob_here);
      if (daemons != nullptr) daemons->Vanish(fault.a);
      At(fault.a)->Kill(true);
      break;
    case FaultKind::kAbort:
      gone_[fault.a] = timeline->now();
      world_.abort(fault.a);
      break;
    case FaultKind::kDaemonKilled:
    case FaultKind::kDaemonEnded:
      daemons->End(fault.a, fault.kind == FaultKind::kDaemonKilled);
      Heal(fault, fault.duration, [daemons, fault] { daemons->Start(fault.a); });
      break;
    case FaultKind::kDaemonPaused:
      daemons->Pause(fault.a, true);
      Heal(fault, fault.duration, [daemons, fault] { daemons->Pause(fault.a, false); });
      break;
    case FaultKind::kStoreDown:
      daemons->Store(false);
      Heal(fault, fault.duration, [daemons] { daemons->Store(true); });
      break;
    case FaultKind::kIsolated:
      network->BlockPort(oob_here);
      daemons->Isolate(fault.a, true);
      Heal(fault, fault.duration, [network, daemons, oob_here, fault] {
        network->UnblockPort(oob_here);
        daemons->Isolate(fault.a, false);
      });
      break;
    case FaultKind::kDrained:
      daemons->Drain(here, fault.degree, true);
      Heal(fault, fault.duration, [daemons, here, fault] { daemons->Drain(here, fault.degree, false); });
      break;
    case FaultKind::kClockStep: daemons->StepClock(fault.a, fault.degree * kNanosPerSecond); break;
  }
  world_.changed();
}

}  // namespace r2cc::sim
