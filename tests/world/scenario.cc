#include "tests/world/scenario.h"

#include <algorithm>
#include <vector>

#include "tests/world/daemons.h"

namespace r2cc::world {
namespace {

using sim::Class;
using sim::Fault;
using sim::FaultKind;
using enum sim::FaultKind;

constexpr Nanos kMs = kNanosPerMs;
constexpr Nanos kSecond = kNanosPerSecond;

// Of a job of processes that are slow, stopped or paused, and of daemons that come and go. Nothing else is wrong.
const std::vector<FaultKind> kCalm = {kStopShort, kPause,     kPause,        kDaemonKilled, kDaemonEnded, kDaemonEnded,
                                      kStoreDown, kClockStep, kDaemonPaused, kReaderStuck,  kStopLong};
const std::vector<FaultKind> kLinks = {kCutSenderSees,  kCutSenderSees,  kCutReceiverSees, kCutBothSee,       kCutNoneSees, kCutNoneSees,
                                       kSilenceForward, kSilenceBack,    kSilenceBoth,     kClogShort,        kClogLong,    kFlap,
                                       kGray,           kReset,          kSwallowed,       kLargeLost,        kDeadAtStart, kDiesSlowly,
                                       kConnectRefused, kFaultInConnect, kFaultInProof,    kOobLost,          kOobReset,    kPartition,
                                       kAllRailsDown,   kFaultInFence,   kFaultInReplay,   kRailReportedDown, kCloseLate,   kStopShort,
                                       kStopLong,       kPause,          kReaderStuck,     kConnectUnanswered};
const std::vector<FaultKind> kControl = {kDaemonKilled, kDaemonKilled, kDaemonEnded, kDaemonPaused, kStoreDown,
                                         kIsolated,     kDrained,      kDrained,     kDrained,      kClockStep};
// Of RDMA devices, in worlds that have some.
const std::vector<FaultKind> kDevices = {kQueuePairError, kStatus, kPostFails, kSlowCalls, kCompletionError, kStalledPair, kStalledDevice};
const std::vector<FaultKind> kGone = {kDeath, kDeathHeldOpen, kVanish, kAbort};

// Daemons and jobs have found each other after about 1.5 s; until then some faults happen, too.
Nanos MakeTime(sim::Random* random) { return kSecond + random->Between(random->Chance(8) ? 0 : kSecond, 6 * kSecond); }

Fault MakeWorldFault(sim::Random* random, const sim::Scenario& scenario, FaultKind kind) {
  Fault fault = sim::MakeFault(random, scenario, kind);
  if (fault.at != 0) fault.at = MakeTime(random);
  switch (kind) {
    // A NIC that has flapped often proves itself for 30 s, which is a matter of health/view's tests.
    case kFlap: fault.degree = static_cast<int>(random->Between(2, 4)); break;
    case kDrained:
      fault.degree = random->Pick(8);
      fault.duration = random->Between(100 * kMs, 6 * kSecond);
      break;
    case kDaemonKilled:
    case kDaemonEnded:
    case kDaemonPaused:
    case kStoreDown:
    case kIsolated: fault.duration = random->Between(10 * kMs, random->Chance(3) ? 6 * kSecond : kSecond); break;
    case kClockStep: fault.degree = random->Of<int>({-3600, -5, -1, 1, 5, 3600, 86'400 * 365}); break;
    default: break;
  }
  if (kind == kDaemonKilled || kind == kDaemonEnded || kind == kDaemonPaused) fault.a = random->Pick(scenario.daemons);
  return fault;
}

// The same faults once a minute: time enough for the longest of them, and for all to be mended. Those that a link or connection never
// recovers from, and those that wait for a moment, are left out.
void AddRounds(sim::Random* random, sim::Scenario* scenario) {
  static const std::vector<FaultKind> kRepeated = {kCutSenderSees, kCutNoneSees,  kSilenceForward, kReset,     kOobReset,    kOobLost,
                                                   kPartition,     kAllRailsDown, kGray,           kStopShort, kReaderStuck, kDaemonKilled,
                                                   kDaemonPaused,  kStoreDown,    kIsolated,       kDrained,   kClockStep};
  scenario->rounds = 24;
  scenario->round = 60 * kSecond;
  scenario->group.reset();
  scenario->faults.clear();
  for (int64_t left = random->Between(1, 6); left > 0; --left) {
    Fault fault = MakeWorldFault(random, *scenario, random->Of(kRepeated));
    for (int round = 0; round < scenario->rounds; ++round, fault.at += scenario->round) scenario->faults.push_back(fault);
  }
  for (sim::FlowPlan& flow : scenario->flows) {
    flow.batch = flow.messages.size();
    flow.batch_every = scenario->round;
    const auto once = flow.messages;
    for (int round = 0; round < scenario->rounds; ++round) flow.messages.insert(flow.messages.end(), once.begin(), once.end());
  }
}

// Most runs but the last one end as a process of theirs crashes; and daemons end, too, while processes come and go.
void AddRuns(sim::Random* random, sim::Scenario* scenario) {
  const int nodes = static_cast<int>(scenario->processes.size());
  for (Fault& fault : scenario->faults)
    if (fault.at != 0 && random->Chance(2)) fault.at += random->Between(0, 8 * kSecond);
  for (int run = 1; run < scenario->runs; ++run) {
    if (scenario->kind != Class::kGone && random->Chance(4)) continue;
    Fault crash = MakeWorldFault(random, *scenario, kCrash);
    crash.at += (run - 1) * 4 * kSecond;
    crash.a = random->Pick(nodes);
    scenario->faults.push_back(crash);
    if (random->Chance(2)) continue;
    Fault end = MakeWorldFault(random, *scenario, random->Of<FaultKind>({kDaemonKilled, kDaemonEnded}));
    end.at = std::max(kSecond, crash.at + random->Between(-500 * kMs, 2 * kSecond));
    scenario->faults.push_back(end);
  }
  for (int later = nodes; later < nodes * scenario->runs; ++later) {
    sim::ProcessOptions process = scenario->processes[static_cast<size_t>(later - nodes)];
    process.later = true;
    scenario->processes.push_back(process);
  }
}

}  // namespace

sim::Scenario MakeScenario(uint64_t seed) {
  sim::Random random(seed * 0x9e3779b97f4a7c15ULL + 2);
  sim::Scenario scenario;
  scenario.kind = seed % 10 == 0 ? Class::kCalm : seed % 10 == 1 ? Class::kGone : Class::kHealing;
  MakeTopology(&random, &scenario);
  MakePaths(&random, &scenario, random.Of<Nanos>({0, 10'000, 200'000, 5 * kMs}));
  MakeFlows(&random, &scenario);
  for (sim::FlowPlan& flow : scenario.flows) {
    flow.start += random.Between(0, 2 * kSecond);
    flow.send_gap_most = random.Between(10 * kMs, 250 * kMs);
  }
  const bool verbs = seed / 3 % 8 == 5 || seed % 20 == 10;
  for (sim::ProcessOptions& options : scenario.processes) {
    options.deadline = scenario.kind == Class::kGone ? random.Between(2 * kSecond, 10 * kSecond) : 30 * kSecond;
    options.keys = seed / 10 % 2 == 1;
    // Machines boot at different times, and a quartz is off by some hundred millionths at most. Those of RDMA rails have the world's time,
    // as the fake fabric does.
    if (!verbs) options.clock = {random.Between(0, 1'000'000) * kMs, random.Between(-1000, 1000)};
  }
  // A device of an RDMA rail ends with its process, and the fabric's with the world.
  if (!verbs && (seed % 10 == 4 || seed % 10 == 7 || seed % 20 == 11)) scenario.runs = static_cast<int>(random.Between(2, 3));
  scenario.daemons = static_cast<int>(scenario.processes.size()) + (scenario.runs > 1 ? 0 : random.Pick(3));
  scenario.twins = seed % 7 == 3;
  // Members name no registered memory.
  if (!verbs && !scenario.processes[0].keys && random.Chance(2)) {
    scenario.group = {.operations = static_cast<uint64_t>(random.Between(5, 60)), .count = static_cast<size_t>(random.Between(1, 8000))};
    scenario.group->start = kSecond + random.Between(100 * kMs, 2 * kSecond);
    scenario.group->gap = random.Between(kMs, 80 * kMs);
  }
  if (verbs) MakeVerbs(&random, /*link_monitor=*/seed / 8 % 2 == 0, &scenario);
  const auto add = [&](std::vector<FaultKind> kinds, int count) {
    if (verbs) std::erase_if(kinds, [](FaultKind kind) { return kind < kDaemonKilled && !HappensTo(sim::Rails::kVerbs, kind); });
    for (int i = 0; i < count; ++i) scenario.faults.push_back(MakeWorldFault(&random, scenario, random.Of(kinds)));
  };
  if (scenario.kind == Class::kGone && scenario.runs == 1) add(kGone, 1);
  if (scenario.kind == Class::kHealing) {
    add(kLinks, static_cast<int>(random.Between(1, 6)));
    add(kControl, static_cast<int>(random.Between(0, 4)));
    if (verbs) add(kDevices, static_cast<int>(random.Between(0, 3)));
  } else {
    add(kCalm, static_cast<int>(random.Between(0, 4)));
  }
  // A storm: everything at about the same time, each fault while the one before is still being dealt with.
  if (scenario.kind == Class::kHealing && random.Chance(3)) {
    Nanos when = MakeTime(&random);
    for (Fault& fault : scenario.faults) {
      if (fault.moment.has_value() || fault.kind == kDeadAtStart) continue;
      fault.at = when;
      when += random.Between(0, random.Chance(3) ? 500 * kMs : 50 * kMs);
    }
  }
  if (scenario.runs > 1) AddRuns(&random, &scenario);
  // With keys and without: see above.
  if ((seed % 160 == 8 || seed % 160 == 118) && !verbs) AddRounds(&random, &scenario);
  return scenario;
}

sim::Result RunWorld(const sim::Scenario& scenario, uint64_t seed, bool verbose) {
  return sim::RunScenario(scenario, seed, verbose, [](sim::Network* network, sim::Checker* checker, const sim::Scenario& made) {
    return std::make_unique<ClusterDaemons>(network, checker, made);
  });
}

}  // namespace r2cc::world
