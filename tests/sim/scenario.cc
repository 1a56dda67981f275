#include "tests/sim/scenario.h"

#include <algorithm>

namespace r2cc::sim {
namespace {

using enum FaultKind;

constexpr Nanos kMs = kNanosPerMs;
constexpr Nanos kSecond = kNanosPerSecond;

uint64_t MakeSize(Random* random, uint32_t chunk) {
  switch (random->Pick(10)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return 127;
    case 3: return 128;
    case 4: return chunk - 1;
    case 5: return chunk;
    case 6: return chunk + 1;
    case 7: return static_cast<uint64_t>(random->Between(1, 4096));
    case 8: return static_cast<uint64_t>(random->Between(1, 65536));
    default: return static_cast<uint64_t>(chunk) * static_cast<uint64_t>(random->Between(2, 20)) + static_cast<uint64_t>(random->Pick(300));
  }
}

// When something happens: within the job, mostly.
Nanos MakeTime(Random* random) { return kNanosPerSecond + random->Between(0, random->Chance(3) ? 2500 * kMs : 800 * kMs); }

}  // namespace

void MakeTopology(Random* random, Scenario* scenario) {
  const int count = random->Chance(4) ? 3 : 2;
  const bool same = !random->Chance(4);
  const int rails = 1 + random->Pick(4);
  ProcessOptions options;
  options.chunk_bytes = random->Of<uint32_t>({512, 1024, 4096, 4096, 8192, 65536});
  // The eager path takes messages of one chunk.
  options.eager_bytes = random->Chance(4) ? 0 : std::min<uint32_t>(options.chunk_bytes, net::kEagerBytesMax);
  options.sockets_per_rail = static_cast<uint8_t>(random->Chance(4) ? 2 : 1);
  options.turn_bytes = random->Of<size_t>({1024, 4096, 16384, 65536});
  options.workers = random->Chance(2);
  options.mode = random->Chance(4) ? net::StripeMode::kMigrate : net::StripeMode::kBalance;
  options.turn_latency_most = random->Of<Nanos>({5'000, 20'000, 200'000, 2 * kMs});
  for (int i = 0; i < count; ++i) {
    options.rails = same ? rails : 1 + random->Pick(4);
    scenario->processes.push_back(options);
  }
  scenario->full_fabric = random->Chance(2);
  scenario->send_buffer_bytes = random->Of<size_t>({8192, 32768, 131072});
  scenario->receive_buffer_bytes = random->Of<size_t>({8192, 65536, 131072});
}

void MakePaths(Random* random, Scenario* scenario, Nanos jitter_most) {
  const Nanos delay = random->Of<Nanos>({5'000, 20'000, 100'000, kMs});
  // Slow rails keep bytes in flight while things happen. A queue of more than R2CC_SILENCE_MS is no calm.
  std::vector<int64_t> rates = {50'000'000, 400'000'000, 2'000'000'000};
  if (scenario->kind != Class::kCalm) rates.insert(rates.end(), {2'000'000, 10'000'000});
  const int64_t rate = random->Of(rates);
  const bool unequal = random->Chance(3);
  const int count = static_cast<int>(scenario->processes.size());
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < count; ++b) {
      if (a == b) continue;
      const int rails_a = scenario->processes[static_cast<size_t>(a)].rails, rails_b = scenario->processes[static_cast<size_t>(b)].rails;
      for (int i = kOobRail; i < rails_a; ++i)
        for (int j = kOobRail; j < rails_b; ++j) {
          PathOptions path{.delay = delay, .rate_bytes_per_s = rate};
          if (unequal && i >= 0 && j >= 0) path.rate_bytes_per_s = rate / (1 + (i + j) % 4);
          // Channels overtake each other.
          if (random->Chance(2)) path.delay = delay * (1 + random->Pick(10));
          if (jitter_most > 0) path.jitter = random->Between(0, jitter_most);
          const int links = std::max(rails_a, rails_b);
          path.reachable = (i == kOobRail) == (j == kOobRail);
          if (path.reachable && i >= 0 && !scenario->full_fabric) {
            path.reachable = false;
            for (int link = 0; link < links; ++link) path.reachable |= link % rails_a == i && link % rails_b == j;
          }
          scenario->paths.push_back({{{a, i}, {b, j}}, path});
        }
    }
}

void MakeFlows(Random* random, Scenario* scenario) {
  const int count = static_cast<int>(scenario->processes.size());
  const bool paced = !random->Chance(3);
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < count; ++b) {
      if (a == b || (count == 3 && (a + 1) % 3 != b && !random->Chance(4))) continue;
      const int flows = count == 2 ? static_cast<int>(random->Between(a == 0 ? 1 : 0, 4)) : static_cast<int>(random->Between(1, 2));
      for (int i = 0; i < flows; ++i) {
        FlowPlan plan;
        plan.sender = a;
        plan.receiver = b;
        plan.rail = random->Pick(scenario->processes[static_cast<size_t>(a)].rails);
        plan.start = kNanosPerSecond + random->Between(0, random->Chance(4) ? kSecond : 5 * kMs);
        plan.send_window = static_cast<int>(random->Between(1, random->Chance(3) ? 32 : 8));
        plan.receive_window = static_cast<int>(random->Between(1, random->Chance(3) ? 32 : 8));
        if (paced) plan.send_gap_most = random->Between(0, 60 * kMs);
        if (paced || random->Chance(3)) plan.receive_gap_most = random->Between(0, 60 * kMs);
        plan.linger_most = random->Chance(2) ? 0 : random->Between(0, 100 * kMs);
        // Some send small messages alone, more of them than a receiver stages, to one that is slow to post.
        const bool small = random->Chance(8);
        if (small) plan.send_gap_most = 0;
        if (small) plan.receive_gap_most = random->Between(kMs, 10 * kMs);
        const int messages = static_cast<int>(small ? random->Between(40, 100) : random->Between(1, 40));
        for (int m = 0; m < messages; ++m) {
          const uint64_t bytes = small ? static_cast<uint64_t>(random->Pick(200))
                                       : std::min<uint64_t>(MakeSize(random, scenario->processes[0].chunk_bytes), 192 * 1024);
          plan.messages.emplace_back(bytes, bytes + (random->Chance(2) ? 0 : static_cast<uint64_t>(random->Pick(5000))));
        }
        scenario->flows.push_back(plan);
      }
    }
}

// Messages wait for their grants, chunks of a few bytes tell nothing new.
void MakeVerbs(Random* random, bool link_monitor, Scenario* scenario) {
  VerbsRailsOptions& verbs = scenario->verbs.emplace();
  verbs.adaptive_routing = random->Chance(3);
  verbs.fabric.reorder = verbs.adaptive_routing;
  if (random->Chance(3)) verbs.driver = "rdma_rxe";
  verbs.fabric.placement_most = random->Of<Nanos>({0, 3'000, 50'000});
  verbs.fabric.placement_late_one_in = random->Of<int>({0, 20, 200});
  verbs.fabric.placement_late_most = random->Of<Nanos>({kMs, 5 * kMs, 50 * kMs});
  verbs.fabric.duplicate_one_in = random->Of<int>({0, 3, 30});
  verbs.fabric.duplicate_late_most = random->Of<Nanos>({kMs, 100 * kMs, kSecond});
  for (ProcessOptions& options : scenario->processes) {
    options.keys = true;
    options.link_monitor = link_monitor;
    options.eager_bytes = 0;
    options.sockets_per_rail = 1;
    options.workers = false;
    options.chunk_bytes = std::max<uint32_t>(options.chunk_bytes, 1024);
  }
}

Fault MakeFault(Random* random, const Scenario& scenario, FaultKind kind) {
  Fault fault{.kind = kind, .at = MakeTime(random)};
  const FlowPlan& flow = scenario.flows[static_cast<size_t>(random->Pick(static_cast<int>(scenario.flows.size())))];
  fault.a = flow.sender;
  fault.b = flow.receiver;
  const int rails_a = scenario.processes[static_cast<size_t>(fault.a)].rails,
            rails_b = scenario.processes[static_cast<size_t>(fault.b)].rails;
  const int link = random->Pick(std::max(rails_a, rails_b));
  fault.rail_a = link % rails_a;
  fault.rail_b = link % rails_b;
  fault.duration = random->Chance(3) ? random->Between(kMs, 100 * kMs) : random->Between(50 * kMs, 3 * kSecond);
  switch (kind) {
    case kClogShort:
      fault.duration = random->Between(kMs, 140 * kMs);
      // After 134 ms a device sends again what is not acknowledged to it, from memory that the job may have deregistered meanwhile: the
      // message came, and its acknowledgement by another link. That costs the link and no byte, but it is no calm.
      if (scenario.verbs && scenario.kind == Class::kCalm) fault.duration = std::min(fault.duration, 120 * kMs);
      break;
    case kClogLong: fault.duration = random->Between(300 * kMs, 4 * kSecond); break;
    case kFlap: fault.degree = static_cast<int>(random->Between(2, 12)); break;
    case kGray: fault.degree = static_cast<int>(random->Between(4, 20)); break;
    case kReset: fault.degree = 1 + random->Pick(3); break;
    case kSwallowed:
    case kDiesSlowly: fault.degree = random->Pick(16 * 64); break;
    case kLargeLost: fault.degree = random->Pick(3); break;
    case kOobReset: fault.degree = 1 + random->Pick(3); break;
    case kWeight: fault.degree = random->Of<int>({0, 1, 250, 500, 999}); break;
    case kDeadAtStart: fault.at = 0; break;
    case kCloseLate: fault.degree = static_cast<int>(random->Between(1, 100)); break;
    case kFaultInConnect: fault.moment = Moment::kLinkOpening; break;
    case kFaultInProof: fault.moment = Moment::kLinkProving; break;
    case kFaultInFence: fault.moment = random->Chance(2) ? Moment::kLinkFencing : Moment::kAcceptorEnds; break;
    case kFaultInReplay: fault.moment = Moment::kLinkReplays; break;
    case kLastAckLost: fault.moment = Moment::kRecvClosing; break;
    case kStopShort: fault.duration = random->Between(kMs, kSecond); break;
    case kStopLong: fault.duration = random->Between(kSecond, random->Chance(4) ? 40 * kSecond : 5 * kSecond); break;
    case kPause: fault.duration = random->Between(kMs, 150 * kMs); break;
    case kQueuePairError: fault.degree = random->Pick(3); break;
    case kStatus:
    case kPostFails: fault.degree = random->Pick(60); break;
    case kSlowCalls: fault.degree = static_cast<int>(random->Between(1, 100)); break;
    case kStalledPair:
    case kStalledDevice: fault.degree = random->Pick(2); break;
    case kRenumbered:
    case kAllRailsDown: fault.degree = random->Pick(2); break;
    default: break;
  }
  if (fault.moment.has_value()) {
    fault.at = 0;
    fault.degree = random->Pick(15);
    fault.countdown = kind == kLastAckLost ? 1 : static_cast<int>(random->Between(1, 8));
  }
  return fault;
}

namespace {

const std::vector<FaultKind> kCalm = {kClogShort, kStopShort, kStopLong, kPause, kPause, kGray, kWeight, kReaderStuck};
const std::vector<FaultKind> kHealing = {
    kCutSenderSees,  kCutReceiverSees,   kCutBothSee,     kCutNoneSees,  kSilenceForward, kSilenceBack,      kSilenceBoth,
    kClogShort,      kClogLong,          kFlap,           kGray,         kReset,          kRailReportedDown, kDeadAtStart,
    kConnectRefused, kConnectUnanswered, kFaultInConnect, kFaultInProof, kOobLost,        kOobReset,         kPartition,
    kAllRailsDown,   kFaultInFence,      kFaultInReplay,  kLastAckLost,  kVerdict,        kWeight,           kPathVerdict,
    kStopShort,      kStopLong,          kPause,          kCloseLate,    kCloseLate,      kCloseFails,       kDeviceLost,
    kRenumbered,     kSwallowed,         kSwallowed,      kLargeLost,    kDiesSlowly,     kReaderStuck};
// Of devices alone, in addition.
const std::vector<FaultKind> kDevices = {kQueuePairError, kQueuePairError, kStatus,       kStatus,          kPostFails,
                                         kPostFails,      kSlowCalls,      kSlowCalls,    kCompletionError, kDeviceLost,
                                         kStalledPair,    kStalledPair,    kStalledDevice};
const std::vector<FaultKind> kGone = {kDeath, kDeathHeldOpen, kVanish, kAbort};

// A flow on each rail whose receiver is always a little behind, so that the sender always waits for something: then a queue pair that
// reports nothing is missed in time. Most of them do deliver: then nothing but their completions is missing.
void MakeSteady(Random* random, Scenario* scenario) {
  for (auto& [ports, path] : scenario->paths) path.rate_bytes_per_s = std::max<int64_t>(path.rate_bytes_per_s, 100'000'000);
  const int rails = scenario->processes[0].rails;
  for (int rail = 0; rail < rails; ++rail) {
    FlowPlan plan;
    plan.receiver = 1;
    plan.rail = rail;
    plan.start = kNanosPerSecond + random->Between(0, 5 * kMs);
    plan.send_window = 32;
    plan.receive_window = static_cast<int>(random->Between(1, 4));
    plan.receive_gap_most = 10 * kMs;
    for (int message = 0; message < 300; ++message) {
      const auto bytes = static_cast<uint64_t>(random->Between(1, scenario->processes[0].chunk_bytes));
      plan.messages.emplace_back(bytes, bytes);
    }
    scenario->flows.push_back(plan);
  }
  Fault fault = MakeFault(random, *scenario, kStalledPair);
  fault.a = 0;
  fault.b = 1;
  fault.rail_a = random->Pick(rails);
  fault.rail_b = fault.rail_a % scenario->processes[1].rails;
  fault.at = kNanosPerSecond + random->Between(50 * kMs, 400 * kMs);
  fault.degree = random->Chance(4) ? 0 : 1;
  scenario->faults.resize(std::min<size_t>(scenario->faults.size(), random->Chance(2) ? 1 : 0));
  scenario->faults.push_back(fault);
}

}  // namespace

const char* Name(Class kind) {
  switch (kind) {
    case Class::kCalm: return "calm";
    case Class::kHealing: return "healing";
    case Class::kGone: return "gone";
    case Class::kDeadline: return "deadline";
  }
  return "unknown";
}

Scenario MakeScenario(uint64_t seed, Rails rails) {
  Random random(seed * 0x9e3779b97f4a7c15ULL + 1);
  Scenario scenario;
  switch (seed % 10) {
    case 0: scenario.kind = Class::kCalm; break;
    case 1:
    case 2: scenario.kind = Class::kGone; break;
    case 3: scenario.kind = Class::kDeadline; break;
    default: scenario.kind = Class::kHealing; break;
  }
  MakeTopology(&random, &scenario);
  MakePaths(&random, &scenario, random.Of<Nanos>({0, 10'000, 200'000, 5 * kMs}));
  MakeFlows(&random, &scenario);
  const Nanos deadline = scenario.kind == Class::kDeadline ? random.Between(3 * kSecond, 6 * kSecond)
                         : scenario.kind == Class::kGone   ? random.Between(2 * kSecond, 10 * kSecond)
                                                           : 30 * kSecond;
  for (ProcessOptions& options : scenario.processes) {
    options.deadline = deadline;
    // Of each class a half.
    options.keys = seed / 10 % 2 == 1;
    // As in a job of many peers.
    options.all_links = seed / 80 % 4 != 3;
  }
  // And of these: who is stopped is soon full of what wants to connect to its rails, and must not be full of what asks for it.
  if (seed / 20 % 2 == 1) scenario.backlog = 32;

  int others = static_cast<int>(random.Between(1, 10));
  if (scenario.kind == Class::kGone) {
    scenario.faults.push_back(MakeFault(&random, scenario, random.Of(kGone)));
    others = random.Pick(3);
  }
  if (scenario.kind == Class::kDeadline) {
    Fault fault = MakeFault(&random, scenario, random.Chance(3) ? kCloseNever : kBeyondDeadline);
    fault.duration = deadline + random.Between(kSecond, 4 * kSecond);
    fault.degree = random.Pick(2);
    scenario.faults.push_back(fault);
    others = random.Pick(3);
  }
  // Of each half of those with a small backlog and without again a half.
  if (rails == Rails::kVerbs) MakeVerbs(&random, seed / 40 % 2 == 0, &scenario);
  std::vector<FaultKind> kinds = scenario.kind == Class::kHealing ? kHealing : kCalm;
  if (rails == Rails::kVerbs) {
    if (scenario.kind == Class::kHealing) kinds.insert(kinds.end(), kDevices.begin(), kDevices.end());
    std::erase_if(kinds, [](FaultKind kind) { return !HappensTo(Rails::kVerbs, kind); });
  }
  for (int i = 0; i < others; ++i) {
    const FaultKind kind = random.Of(kinds);
    // Connections that end with their last words unheard lose nothing as long as one channel is left: one such fault, alone.
    if (kind == kLastAckLost && i > 0) continue;
    scenario.faults.push_back(MakeFault(&random, scenario, kind));
    if (kind == kLastAckLost) break;
  }
  const bool steady = rails == Rails::kVerbs && seed % 10 == 4;
  if (steady) MakeSteady(&random, &scenario);
  // A storm: everything at about the same time, each fault while the one before is still being dealt with.
  if (scenario.kind == Class::kHealing && !steady && random.Chance(3)) {
    Nanos when = MakeTime(&random);
    for (Fault& fault : scenario.faults) {
      if (fault.moment.has_value() || fault.kind == kDeadAtStart) continue;
      fault.at = when;
      when += random.Between(0, random.Chance(3) ? 300 * kMs : 30 * kMs);
    }
  }
  return scenario;
}

std::vector<int> Scenario::Rails() const {
  std::vector<int> rails;
  for (const ProcessOptions& options : processes) rails.push_back(options.rails);
  return rails;
}

Nanos Scenario::LastPost() const {
  Nanos last = group.has_value() ? group->start + static_cast<Nanos>(group->operations) * group->gap : 0;
  for (const FlowPlan& flow : flows)
    last = std::max(last, flow.start + static_cast<Nanos>(flow.batch == 0 ? 0 : flow.messages.size() / flow.batch) * flow.batch_every +
                              static_cast<Nanos>(flow.messages.size()) * std::max(flow.send_gap_most, flow.receive_gap_most));
  return std::max<Nanos>(last - kNanosPerSecond, 0);
}

std::string Scenario::Summary() const {
  std::string text = Name(kind);
  if (kind == Class::kGone && !faults.empty()) text += std::string(", ") + sim::Name(faults.front().kind);
  return text;
}

std::string Scenario::Text() const {
  std::string text = std::string("class ") + Name(kind) + (full_fabric ? ", full fabric" : ", rail-only") +
                     (daemons > 0 ? ", " + std::to_string(daemons) + " daemons" : "") +
                     (rounds > 1 ? ", " + std::to_string(rounds) + " rounds" : "") +
                     (runs > 1 ? ", " + std::to_string(runs) + " runs" : "") + ", rails";
  for (const int rails : Rails()) text += " " + std::to_string(rails);
  text += ", sockets " + std::to_string(processes[0].sockets_per_rail) + ", chunk " + std::to_string(processes[0].chunk_bytes) +
          (!verbs ? "" : std::string(", verbs of ") + verbs->driver + (verbs->adaptive_routing ? ", adaptive routing" : "")) +
          (processes[0].link_monitor ? "" : ", ports without an interface") +
          (processes[0].mode == net::StripeMode::kMigrate ? ", migration only" : "") + (processes[0].keys ? ", keys" : "") +
          (processes[0].all_links ? "" : ", links on demand") + ", deadline " + std::to_string(processes[0].deadline / kMs) + " ms, " +
          std::to_string(flows.size()) + " flows\n";
  for (const Fault& fault : faults)
    text += std::string("  ") + sim::Name(fault.kind) + " " + std::to_string(fault.a) + "/" + std::to_string(fault.rail_a) + " -> " +
            std::to_string(fault.b) + "/" + std::to_string(fault.rail_b) + " at " +
            std::to_string(std::max<Nanos>(0, fault.at - kNanosPerSecond) / 1000) + " us" + (fault.moment.has_value() ? " (armed)" : "") +
            " for " + std::to_string(fault.duration / 1000) + " us\n";
  return text;
}

}  // namespace r2cc::sim
