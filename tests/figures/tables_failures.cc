// Many GPUs, several lost NICs: 13B with tensor parallelism inside the servers and data parallelism across them.
#include <algorithm>
#include <map>

#include "tests/figures/failures.h"
#include "tests/figures/jobs.h"
#include "tests/figures/simulated.h"
#include "tests/figures/tables.h"

namespace r2cc::figures {
namespace {

constexpr int kDraws = 100;

// The time of an AllReduce depends on how many servers lost how many rails, not on which: each such case is planned once.
class IterationTimes {
 public:
  IterationTimes(const TrainingJob& job) : job_(job), cluster_{.servers = job.servers}, compute_s_(ScaledComputeSeconds(job)) {}

  double Seconds(Scheme scheme, Lost lost) {
    std::sort(lost.begin(), lost.end());
    const auto [found, fresh] = times_s_.try_emplace({scheme, lost}, 0);
    if (fresh) found->second = IterationSeconds(job_, compute_s_, TimesOf(job_, cluster_, scheme, false, lost));
    return found->second;
  }
  // To the ring without a fault.
  double Ratio(Scheme scheme, const Lost& lost) { return Seconds(scheme, lost) / Seconds(Scheme::kBalance, Lost(job_.servers, 0)); }

  double NetworkShare() const {
    const TrafficSeconds healthy = TimesOf(job_, cluster_, Scheme::kBalance, false, Lost(job_.servers, 0));
    return healthy.gradient / IterationSeconds(job_, compute_s_, healthy);
  }
  double GradientBytes() const { return TrafficOf(job_).gradient_bytes * job_.gpus_per_server; }
  const Cluster& cluster() const { return cluster_; }
  const TrainingJob& job() const { return job_; }

 private:
  TrainingJob job_;
  Cluster cluster_;
  double compute_s_;
  std::map<std::pair<Scheme, Lost>, double> times_s_;
};

struct MeanAndWorst {
  double sum = 0;
  double worst = 0;
  void Add(double value) {
    sum += value;
    worst = std::max(worst, value);
  }
  Cell Mean() const { return {sum / kDraws, 2}; }
};

// The step list of what was chosen for a draw, over its predicted time.
double SimulatedOverPredicted(const IterationTimes& times, const Lost& lost) {
  const plan::Ports ports = PortsOf(times.cluster(), lost);
  const auto bytes = static_cast<uint64_t>(times.GradientBytes());
  const plan::Decision decision = plan::Choose(bytes, ports);
  return SimulatedCandidate(decision.chosen, bytes, ports).seconds / decision.chosen.time_s;
}

Table Failures() {
  Table table("failures", {"gpus", "failures", "network_share_percent", "migration_percent", "balance_percent", "r2cc_percent",
                           "ours_percent", "r2cc_worst_percent", "ours_worst_percent", "ours_simulated_over_predicted"});
  for (const int gpus : {512, 1024}) {
    IterationTimes times(Job13BData(gpus));
    for (int failures = 1; failures <= 10; ++failures) {
      std::map<Scheme, MeanAndWorst> overhead;
      for (int draw = 0; draw < kDraws; ++draw) {
        const Lost lost = LoseNics(failures, times.cluster().servers, times.cluster().rails, draw);
        for (const Scheme scheme : kSchemes) overhead[scheme].Add((times.Ratio(scheme, lost) - 1) * 100);
      }
      const bool simulate = failures == 1 || failures == 10;
      const Lost first = LoseNics(failures, times.cluster().servers, times.cluster().rails, 0);
      table.Add({gpus,
                 failures,
                 {times.NetworkShare() * 100, 1},
                 overhead[Scheme::kMigration].Mean(),
                 overhead[Scheme::kBalance].Mean(),
                 overhead[Scheme::kR2cc].Mean(),
                 overhead[Scheme::kOurs].Mean(),
                 {overhead[Scheme::kR2cc].worst, 2},
                 {overhead[Scheme::kOurs].worst, 2},
                 simulate ? Cell(SimulatedOverPredicted(times, first), 4) : Cell("")});
    }
  }
  return table;
}

// One lost NIC where gradients travel while the backward pass still runs.
Table Overlap() {
  Table table("overlap",
              {"gpus", "overlap_percent", "iteration_ms", "migration_percent", "balance_percent", "r2cc_percent", "ours_percent"});
  for (const int gpus : {512, 1024}) {
    for (const int percent : {0, 10, 20, 30, 40, 50, 100}) {
      TrainingJob job = Job13BData(gpus);
      job.overlap = percent / 100.0;
      IterationTimes times(job);
      Lost lost(job.servers, 0);
      const double healthy_s = times.Seconds(Scheme::kBalance, lost);
      lost[0] = 1;
      const auto overhead = [&](Scheme scheme) { return Cell((times.Ratio(scheme, lost) - 1) * 100, 2); };
      table.Add({gpus,
                 percent,
                 {healthy_s * 1e3, 1},
                 overhead(Scheme::kMigration),
                 overhead(Scheme::kBalance),
                 overhead(Scheme::kR2cc),
                 overhead(Scheme::kOurs)});
    }
  }
  return table;
}

// How robust that is: the share of an iteration that the AllReduce may take before ours costs what is published.
Table ShareLimit() {
  Table table("share_limit", {"gpus", "failures", "ours_allreduce_worst_percent", "published_percent", "share_limit_percent"});
  for (const int gpus : {512, 1024}) {
    const Cluster cluster{.servers = gpus / 8};
    const IterationTimes times(Job13BData(gpus));
    const double healthy_s = ServerAllReduceSeconds(cluster, Scheme::kBalance, times.GradientBytes(), Lost(cluster.servers, 0));
    for (const auto& [failures, published] : {std::pair{1, 1.5}, std::pair{10, 4.3}}) {
      double worst = 0;
      for (int draw = 0; draw < kDraws; ++draw) {
        const Lost lost = LoseNics(failures, cluster.servers, cluster.rails, draw);
        worst = std::max(worst, ServerAllReduceSeconds(cluster, Scheme::kOurs, times.GradientBytes(), lost) / healthy_s - 1);
      }
      table.Add({gpus, failures, {worst * 100, 2}, {published, 1}, {std::min(100.0, published / worst), 0}});
    }
  }
  return table;
}

// Weeks of training in which NICs fail and are repaired. The rate is that of network faults which Meta saw in 54 days of 16,384 GPUs (Llama
// 3: 35 interruptions by switches and cables). A repair takes a day. What a failure costs at once: stock NCCL, its default time-out and
// the median recovery that R2CC's paper names (68 minutes), on a spare server; AdapCC-like, the time-out at the NIC's floor; R2CC, the
// longest published hit; ours, the longest stall measured with stock NCCL (measured_stalls.csv).
Table Weeks(double hit_s) {
  constexpr double kDayS = 86400;
  constexpr double kDays = 54;
  constexpr double kHorizonS = kDays * kDayS;
  constexpr double kMetaPerNicS = 35 / (16384 * kHorizonS);
  constexpr double kTimeoutS = 58.5, kRestartS = 68 * 60, kTimeoutFloorS = 3.5, kR2ccHitS = 1.5;
  Table table("weeks", {"gpus", "times_rate", "failures", "scheme", "lost_hours", "lost_percent"});
  for (const int gpus : {512, 1024}) {
    IterationTimes times(Job13BData(gpus));
    const Cluster& cluster = times.cluster();
    for (const int factor : {1, 10, 100}) {
      double failures = 0;
      const auto mean_lost_s = [&](double hit_s, auto slowdown) {
        double sum_s = 0;
        failures = 0;
        for (int draw = 0; draw < kDraws; ++draw) {
          const auto drawn = FailuresOver(kHorizonS, factor * kMetaPerNicS, cluster.servers, cluster.rails, draw);
          failures += static_cast<double>(drawn.size()) / kDraws;
          sum_s += LostSeconds(drawn, kHorizonS, kDayS, cluster.servers, hit_s, slowdown);
        }
        return sum_s / kDraws;
      };
      const auto add = [&](const char* scheme, double lost_s) {
        table.Add({gpus, factor, {failures, 1}, scheme, {lost_s / 3600, 2}, {lost_s / kHorizonS * 100, 3}});
      };
      const auto as = [&](Scheme scheme) {
        return [&times, scheme](const Lost& lost) { return std::max(1.0, times.Ratio(scheme, lost)); };
      };
      add("stock NCCL with restart", mean_lost_s(kTimeoutS + kRestartS, [](const Lost&) { return 1.0; }));
      // A tensor parallel group without one of its GPUs is of no use: the whole server is left out.
      add("AdapCC-like", mean_lost_s(kTimeoutFloorS, [&](const Lost& lost) {
            const auto hit = std::count_if(lost.begin(), lost.end(), [](int rails) { return rails > 0; });
            return cluster.servers / static_cast<double>(cluster.servers - hit);
          }));
      add("migration only", mean_lost_s(kR2ccHitS, as(Scheme::kMigration)));
      add("Balance", mean_lost_s(kR2ccHitS, as(Scheme::kBalance)));
      add("R2CC-AllReduce", mean_lost_s(kR2ccHitS, as(Scheme::kR2cc)));
      add("ours", mean_lost_s(hit_s, as(Scheme::kOurs)));
    }
  }
  return table;
}

}  // namespace

std::vector<Table> FailureTables(double hit_s) { return {Failures(), Overlap(), ShareLimit(), Weeks(hit_s)}; }

}  // namespace r2cc::figures
