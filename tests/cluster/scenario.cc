#include "tests/cluster/scenario.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>

namespace r2cc::cluster {
namespace {

// How long a fault may take to be known, and a repair.
constexpr Nanos kKnownMax = 4 * kNanosPerSecond;
constexpr Nanos kBackMax = 20 * kNanosPerSecond;
// What a fault brings with it is over after so long.
constexpr Nanos kAftermath = 2 * kNanosPerSecond;

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// `counts` less what `healthy` sends in `time`.
Counts Without(Counts counts, const Healthy& healthy, Nanos time) {
  const double share = static_cast<double>(time) / static_cast<double>(healthy.time);
  const auto rest = [share](uint64_t all, uint64_t usual) {
    const auto less = static_cast<uint64_t>(std::llround(static_cast<double>(usual) * share));
    return all > less ? all - less : 0;
  };
  for (size_t kind = 0; kind < counts.by_kind.size(); ++kind) {
    counts.by_kind[kind].messages = rest(counts.by_kind[kind].messages, healthy.counts.by_kind[kind].messages);
    counts.by_kind[kind].bytes = rest(counts.by_kind[kind].bytes, healthy.counts.by_kind[kind].bytes);
  }
  return counts;
}

}  // namespace

Healthy MeasureHealthy(Cluster* cluster, Nanos time) {
  cluster->watch().ResetCounts();
  const Counts before = cluster->network().counts();
  const double processor_before = ProcessorSeconds();
  cluster->Run(time);
  return {time, cluster->network().counts() - before, ProcessorSeconds() - processor_before, cluster->watch().views()};
}

Outcome MeasureFault(Cluster* cluster, const Healthy& healthy, const Fault& fault) {
  Outcome outcome;
  outcome.name = fault.name;
  outcome.pages_expected = fault.known ? fault.observers.size() : 0;
  Watch& watch = cluster->watch();
  watch.ResetCounts();
  const Counts counts = cluster->network().counts();
  const double processor = ProcessorSeconds();
  const Nanos begin = cluster->Now();
  watch.Break(fault.nics);
  watch.Await(fault.nics, /*usable=*/false, fault.known ? fault.observers : std::set<int>(), begin);
  fault.breaks();
  cluster->RunUntil([&] { return watch.missing() == 0; }, kKnownMax);
  cluster->Run(kAftermath);
  outcome.pages_missing = watch.missing();
  outcome.delays = watch.delays();
  std::sort(outcome.delays.begin(), outcome.delays.end());
  const Nanos time = cluster->Now() - begin;
  outcome.counts = Without(cluster->network().counts() - counts, healthy, time);
  outcome.verdicts = watch.verdicts();
  outcome.views = watch.views();
  outcome.pages = watch.pages();
  outcome.processor_s =
      ProcessorSeconds() - processor - healthy.processor_s * static_cast<double>(time) / static_cast<double>(healthy.time);

  const Nanos mended = cluster->Now();
  watch.Await(fault.nics, /*usable=*/true, fault.known && outcome.pages_missing == 0 ? cluster->Running() : std::set<int>(), mended);
  fault.mends();
  cluster->RunUntil([&] { return watch.missing() == 0; }, kBackMax);
  cluster->RunUntilQuiet(kBackMax);
  outcome.back_missing = watch.missing();
  for (const Nanos delay : watch.delays()) outcome.back_max = std::max(outcome.back_max, delay);
  watch.Recovered();
  return outcome;
}

Nanos Percentile(const std::vector<Nanos>& sorted, double share) {
  return sorted[static_cast<size_t>(std::ceil(static_cast<double>(sorted.size()) * share)) - 1];
}

Fault LinkDown(Cluster* cluster, const std::vector<Nic>& nics, const std::string& name) {
  const auto set = [cluster, nics](bool up) {
    for (const Nic& nic : nics) cluster->SetLink(nic, up);
  };
  return {name, nics, cluster->Running(), true, [set] { set(false); }, [set] { set(true); }};
}

Fault Silence(Cluster* cluster, const std::vector<Nic>& nics, const std::string& name, bool known) {
  const auto set = [cluster, nics](bool silent) {
    for (const Nic& nic : nics) cluster->SetSilent(nic, silent);
  };
  return {name, nics, cluster->Running(), known, [set] { set(true); }, [set] { set(false); }};
}

Fault PowerLoss(Cluster* cluster, const std::set<int>& nodes, const std::string& name) {
  const auto set = [cluster, nodes](bool on) {
    for (const int node : nodes) cluster->SetPower(node, on);
  };
  return {name, cluster->NicsOf(nodes), cluster->Running(nodes), false, [set] { set(false); }, [set] { set(true); }};
}

}  // namespace r2cc::cluster
